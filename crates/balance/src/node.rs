//! One node at work: a server says its load and follows its site; a controller looks, decides and converts.

use std::{
    fs,
    net::TcpListener,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use sidestep_sys::clock;

use crate::{
    Error, Result,
    config::Config,
    decision::{self, History, NOT_SERVING},
    pages::{NO_SITE, Page, Pages},
    protocol::{Conversion, Next, Outcome, Setting},
};

/// What a node tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// This server serves another site now: its command has been carried out.
    Serves(String),
    /// This controller has tried to convert a server.
    Tried {
        /// Which server.
        server: String,
        /// How it ended.
        outcome: Outcome,
    },
    /// Something did not work, and is tried again.
    Failed(String),
}

/// Runs a node until it is told to stop; `tell` hears what happens.
pub fn run(config: &Config, name: &str, stop: &AtomicBool, mut tell: impl FnMut(News)) -> Result<()> {
    let own = config.node(name)?;
    let node = &config.node[own];
    let listener =
        TcpListener::bind(&node.address).map_err(|source| Error::Listen { address: node.address.clone(), source })?;
    let page = Page::new(node.site.as_deref().map(|site| config.site(site)).transpose()?)?;
    page.lend(listener);
    let mut controller = match &node.controls {
        Some(site) => Some(Controller::new(config, own, config.site(site)?, &page)),
        None => None,
    };
    let mut server = match &node.site {
        Some(_) => Some(Server { config, own, serves: page.site()?, failed: None }),
        None => None,
    };
    while !stop.load(Ordering::Acquire) {
        if let Some(server) = &mut server {
            server.follow(&page, &mut tell)?;
        }
        if let Some(controller) = &mut controller {
            match controller.look(stop) {
                Ok(Some((server, outcome))) => {
                    tell(News::Tried { server: config.node[server].name.clone(), outcome });
                }
                Ok(None) => {}
                Err(error) => tell(News::Failed(error.to_string())),
            }
        }
        thread::sleep(Duration::from_millis(config.rules.sensitivity_ms));
    }
    Ok(())
}

/// A server, which serves the site that it was given when its command has been carried out.
struct Server<'a> {
    config: &'a Config,
    own: usize,
    serves: u16,
    failed: Option<Failed>,
}

/// A conversion that has failed.
struct Failed {
    /// To this site.
    site: u16,
    /// Looks until the next try, and from there to the one after.
    left: u32,
    pause: u32,
}

/// A conversion that goes on failing is tried again after at most so many looks.
const LONGEST_PAUSE: u32 = 64;

impl Server<'_> {
    /// Says its load, and changes its site if that was changed.
    fn follow(&mut self, page: &Page, tell: &mut impl FnMut(News)) -> Result<()> {
        let site = page.site()?;
        if site != self.serves {
            // Its load is that of the other site.
            page.set_load(NOT_SERVING)?;
            if !self.is_time(site) {
                return Ok(());
            }
            if let Some(why) = convert(self.config, self.own, site) {
                let pause = self.failed.take().filter(|failed| failed.site == site).map_or(1, |failed| failed.pause);
                self.failed = Some(Failed { site, left: pause, pause: (2 * pause).min(LONGEST_PAUSE) });
                tell(News::Failed(why));
                return Ok(());
            }
            self.serves = site;
            tell(News::Serves(self.config.sites.get(usize::from(site)).cloned().unwrap_or_default()));
        }
        self.failed = None;
        let load = load(self.config.node[self.own].load.as_deref());
        page.set_load(load.min(NOT_SERVING - 1))
    }

    /// Whether to try a conversion to this site now.
    fn is_time(&mut self, site: u16) -> bool {
        let Some(failed) = self.failed.as_mut().filter(|failed| failed.site == site) else { return true };
        failed.left = failed.left.saturating_sub(1);
        failed.left == 0
    }
}

/// The controller of a site.
struct Controller {
    pages: Pages,
    own: usize,
    site: u16,
    rules: decision::Rules,
    lease_ns: u64,
    setting: Setting,
    history: History,
    /// Conversions it was told of, at its last look.
    seen: u64,
    turn: u64,
}

impl Controller {
    fn new(config: &Config, own: usize, site: u16, page: &Page) -> Controller {
        let controls = |node: &crate::config::Node| {
            node.controls.as_deref().is_some_and(|name| config.site(name).is_ok_and(|known| known == site))
        };
        let others = config.node.iter().enumerate().filter(|(at, node)| *at != own && controls(node));
        let rules = config.rules;
        Controller {
            pages: Pages::new(config, own, page.clone()),
            own,
            site,
            rules: decision::Rules { high: rules.high, low: rules.low, history_ns: rules.history_ms * 1_000_000 },
            lease_ns: rules.lease_ms * 1_000_000,
            setting: Setting { servers: config.node.len() as u16, others: others.map(|(at, _)| at as u16).collect() },
            history: History::default(),
            seen: 0,
            // Another one in each run of this node.
            turn: clock::now(),
        }
    }

    /// One look at all servers; what was tried, if anything.
    fn look(&mut self, stop: &AtomicBool) -> Result<Option<(usize, Outcome)>> {
        let servers = self.pages.servers();
        let wanted = self.history.look(&self.rules, u32::from(self.site), &servers, clock::now());
        let Some(wanted) = wanted.filter(|wanted| servers[*wanted].site != u32::from(NO_SITE)) else { return Ok(None) };
        self.history.settle();
        self.turn += 1;
        let turn = self.turn & ((1 << 48) - 1);
        let places = (self.site, servers[wanted].site as u16, wanted as u16);
        let mut conversion = Conversion::new(self.setting.clone(), self.own as u16, places, turn, self.seen);
        let mut waiting: Option<(u64, u64)> = None;
        let outcome = loop {
            match conversion.next() {
                Next::End(outcome) => break outcome,
                Next::Do(operation) => conversion.done(self.pages.perform(operation)?),
                Next::Wait(by) => {
                    let now = clock::now();
                    let since = waiting.filter(|(known, _)| *known == by).map_or(now, |(_, since)| since);
                    waiting = Some((by, since));
                    if now - since < self.lease_ns {
                        if stop.load(Ordering::Acquire) {
                            break Outcome::Overtaken;
                        }
                        thread::sleep(Duration::from_millis(1));
                        conversion.try_again();
                    } else if let Some(operation) = conversion.lease_is_over() {
                        conversion.taken_over(self.pages.perform(operation)?);
                    }
                }
            }
        };
        self.seen = conversion.counter();
        Ok(Some((wanted, outcome)))
    }
}

/// The load of a server: what its command prints, or that of the machine in per cent.
fn load(command: Option<&str>) -> u64 {
    match command {
        Some(command) => {
            let output = Command::new("sh").args(["-c", command]).output();
            let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
            // One that cannot say is not to be taken, and wants nothing.
            text.ok().and_then(|text| text.parse().ok()).unwrap_or(50)
        }
        None => {
            let running = fs::read_to_string("/proc/loadavg").unwrap_or_default();
            let average: f64 = running.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
            let cores = thread::available_parallelism().map_or(1, usize::from);
            (average * 100.0 / cores as f64) as u64
        }
    }
}

/// Runs the command of a server that has changed sites; what went wrong.
fn convert(config: &Config, own: usize, site: u16) -> Option<String> {
    let node = &config.node[own];
    let Some(name) = config.sites.get(usize::from(site)) else {
        return Some(format!("{} was given to site {site}, which there is not", node.name));
    };
    let command = node.convert.as_deref()?;
    let status = Command::new("sh").args(["-c", command]).env("SITE", name).env("NODE", &node.name).status();
    match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("the command that converts {} to {name} ended with {status}", node.name)),
        Err(error) => Some(format!("the command that converts {} to {name}: {error}", node.name)),
    }
}
