//! `sidestep cache`: a reverse proxy whose answers are never old, and the module beside the application that makes it so.

use std::{hint::black_box, io::Write, path::PathBuf, sync::Arc, thread, time::Duration};

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use nix::unistd::User;
use sidestep_cache::{
    Checker, Current, Mode, Module, Order, Proxy, Settings, Store,
    module::{Author, Users},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use tokio::{io::AsyncWriteExt, net::TcpListener, sync::watch};

/// Options of `sidestep cache`.
#[derive(Debug, Args)]
pub struct Cache {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The parts of a cache.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve clients: answer out of the cache what is current, fetch the rest from the origin
    Proxy(ProxyOptions),
    /// Beside a server of static files: tell proxies the versions of its files, and change files for `put` and `delete`
    Files(Files),
    /// Replace a file, and return when no proxy answers with the old one any more
    Put(Put),
    /// Remove a file, and return when no proxy answers with it any more
    Delete(Delete),
}

/// Options of `sidestep cache proxy`.
#[derive(Debug, Clone, Args)]
pub struct ProxyOptions {
    /// The server to fetch from
    #[arg(long, value_name = "HOST:PORT")]
    pub origin: String,

    /// The application's module, which knows the versions (`sidestep cache files`)
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "without_cache")]
    pub module: Option<String>,

    /// Where to listen for clients
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub listen: String,

    /// How every answer out of the cache is checked
    #[arg(long, value_enum, default_value_t = Check::OneSided)]
    pub check: Check,

    /// Fetch everything, keep nothing
    #[arg(long)]
    pub without_cache: bool,

    /// Mebibytes that are kept
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub memory: usize,

    /// Bytes of the largest body that is kept; larger ones are passed on as they come
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub largest: usize,

    /// Threads that serve; as many as there are processors, unless given
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// A file of settings (TOML: origin, module, check, memory, largest), which go before the options. It is read at the start, and
    /// again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,

    /// Serve counts as OpenMetrics at this address
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<String>,
}

/// How answers are checked.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Check {
    /// By a read of the version in the application's memory, in which the application has no part
    OneSided,
    /// By a question over TCP, which the application answers
    TwoSided,
    /// Not at all: answers may be old
    None,
}

/// Options of `sidestep cache files`.
#[derive(Debug, Args)]
pub struct Files {
    /// The folder whose files the server serves
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,

    /// Where proxies and `put` find the module
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8079")]
    pub listen: String,

    /// Another user who may change files, by name or number; may be given several times. This user and root always may
    #[arg(long, value_name = "USER", value_parser = user)]
    pub allow: Vec<u32>,

    /// Threads that only compute, as a busy application has them; for measurements
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    pub busy: usize,
}

/// Options of `sidestep cache put`.
#[derive(Debug, Args)]
pub struct Put {
    /// The path under which clients ask for it, such as /index.html
    #[arg(value_name = "PATH")]
    pub path: String,

    /// The file that takes its place
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The application's module, and whose it is
    #[command(flatten)]
    pub module: TheModule,
}

/// Options of `sidestep cache delete`.
#[derive(Debug, Args)]
pub struct Delete {
    /// The path under which clients ask for it
    #[arg(value_name = "PATH")]
    pub path: String,

    /// The application's module, and whose it is
    #[command(flatten)]
    pub module: TheModule,
}

/// The module whose files are changed.
#[derive(Debug, Args)]
pub struct TheModule {
    /// The application's module
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8079")]
    pub module: String,

    /// The user, by name or number, whose module it is, if that is neither this user nor root: another one is sent nothing
    #[arg(long, value_name = "USER", value_parser = user)]
    pub owner: Option<u32>,
}

impl TheModule {
    fn author(&self) -> Author {
        Author::new(&self.module, self.owner)
    }
}

/// The number of a user.
fn user(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match User::from_name(text) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        Ok(None) => Err("there is no user of this name".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Carries out what was asked for.
pub fn run(options: &Cache) -> Result<()> {
    match &options.command {
        Command::Proxy(options) => proxy(options),
        Command::Files(options) => files(options),
        Command::Put(options) => {
            let bytes = std::fs::read(&options.file).with_context(|| options.file.display().to_string())?;
            Ok(options.module.author().update(&options.path, &bytes)?)
        }
        Command::Delete(options) => Ok(options.module.author().delete(&options.path)?),
    }
}

fn files(options: &Files) -> Result<()> {
    let module = Module::bind_for(Users::also(&options.allow), &options.folder, &options.listen)?;
    say(&format!("versions at {}", module.address()?));
    for _ in 0..options.busy {
        thread::spawn(|| {
            let mut value = 1u64;
            loop {
                value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            }
        });
    }
    Ok(module.serve()?)
}

impl ProxyOptions {
    /// What the options and the file say now.
    fn settings(&self) -> Result<Settings> {
        let mode = match self.check {
            Check::OneSided => Mode::OneSided,
            Check::TwoSided => Mode::TwoSided,
            Check::None => Mode::Unchecked,
        };
        let module = self.module.clone().filter(|_| !self.without_cache);
        let (checked, memory) = (module.map(|module| (mode, module)), self.memory << 20);
        let settings = Settings { origin: self.origin.clone(), checked, memory, largest: self.largest };
        let Some(file) = &self.settings else { return Ok(settings) };
        let named = || file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(named)?;
        settings.with_file(&text).with_context(named)
    }
}

fn proxy(options: &ProxyOptions) -> Result<()> {
    let Settings { origin, checked, memory, largest } = options.settings()?;
    let cache = checked.map(|(mode, module)| (Store::new(memory), Checker::new(mode, &module)));
    let proxy = Current::new(Arc::new(Proxy::new(&origin, cache, largest)?));
    let threads = options.threads.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(threads.max(1)).enable_all().build().context("cannot start to serve")?;
    runtime.block_on(async {
        let listener =
            TcpListener::bind(&options.listen).await.with_context(|| format!("cannot listen at {}", options.listen))?;
        let metrics = match &options.metrics {
            Some(address) => {
                Some(TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))?)
            }
            None => None,
        };
        say(&format!("clients at {}", listener.local_addr()?));
        let (orders, told) = watch::channel(Order::Serve);
        follow_signals(options.clone(), &proxy, orders)?;
        if let Some(listener) = metrics {
            tokio::spawn(tell_counts(proxy.clone(), listener));
        }
        proxy.serve(listener, told).await;
        Ok(())
    })
}

/// SIGHUP reads the settings again and gives up what is kept; SIGTERM and SIGINT end the proxy when it has answered what was asked.
fn follow_signals(options: ProxyOptions, proxy: &Arc<Current>, orders: watch::Sender<Order>) -> Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot hear signals")?;
    let proxy = proxy.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            if signal != SIGHUP {
                orders.send_replace(Order::Stop);
                continue;
            }
            let changed = options.settings().and_then(|settings| Ok(proxy.proxy().with_settings(&settings)?));
            match changed {
                Ok(changed) => {
                    proxy.replace(changed);
                    say("the settings were read");
                }
                // What works goes on.
                Err(why) => eprintln!("the settings stay as they were: {why:#}"),
            }
        }
    });
    Ok(())
}

/// Answers every connection with the counts, whatever it asks.
async fn tell_counts(current: Arc<Current>, listener: TcpListener) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let proxy = current.proxy();
        let body = proxy.metrics().text(proxy.kept_bytes());
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        tokio::spawn(async move {
            let _ = stream.write_all((head + &body).as_bytes()).await;
            // What was asked is read, so that the answer is not lost to a reset.
            let mut rest = [0; 1024];
            let _ = tokio::time::timeout(Duration::from_secs(1), tokio::io::AsyncReadExt::read(&mut stream, &mut rest))
                .await;
        });
    }
}

/// Says where it listens, to who started it.
fn say(what: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{what}").and_then(|()| out.flush());
}
