//! The guest: a Linux with siw in QEMU, and shells in it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// A guest that runs. It is ended when this is dropped.
pub struct Guest {
    process: Child,
    control: u16,
    /// Ports of the guest with the ports of the host that lead there.
    ports: Vec<(u16, u16)>,
    next: usize,
}

impl Guest {
    /// Starts a guest out of `folder` and waits until it is ready. What passes its network card goes to
    /// `capture`, if there is one.
    pub fn boot(folder: &Path, capture: Option<&Path>) -> Result<Self> {
        let begin = Instant::now();
        let control = free_port()?;
        let ports = (0..SERVER_PORTS).map(|at| Ok((7200 + at, free_port()?))).collect::<Result<Vec<_>>>()?;
        let mut network = format!("user,id=n0,hostfwd=tcp:127.0.0.1:{control}-:7000");
        for (inside, outside) in &ports {
            network += &format!(",hostfwd=tcp:127.0.0.1:{outside}-:{inside}");
        }
        let log = folder.join("serial.log");
        // The guest ends with this process, also if that is killed.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "qemu-system-x86_64"])
            .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "512", "-no-reboot"])
            .args(["-display", "none", "-monitor", "none", "-serial", &format!("file:{}", log.display())])
            .args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr"])
            .args(["-netdev", &network, "-device", "virtio-net-pci,netdev=n0,romfile="])
            .arg("-kernel")
            .arg(folder.join("vmlinuz"))
            .arg("-initrd")
            .arg(folder.join("initramfs.gz"));
        if let Some(capture) = capture {
            command.args(["-object", &format!("filter-dump,id=f0,netdev=n0,file={}", capture.display())]);
        }
        let errors = File::create(folder.join("qemu.log")).context("making qemu.log")?;
        let process = command.stdin(Stdio::null()).stdout(errors.try_clone()?).stderr(errors).spawn();
        let mut guest = Self { process: process.context("starting QEMU")?, control, ports, next: 0 };
        while guest.run("echo here").map_or(true, |answer| answer.trim() != "here") {
            if let Some(status) = guest.process.try_wait()? {
                bail!("QEMU ended with {status}: {}", std::fs::read_to_string(folder.join("qemu.log"))?);
            }
            ensure!(begin.elapsed() < BOOT_LIMIT, "the guest is not ready after {BOOT_LIMIT:?}: see {}", log.display());
            sleep(Duration::from_millis(200));
        }
        let links = guest.run("rdma link")?;
        ensure!(links.contains("siw0/1 state ACTIVE"), "no siw in the guest: {links}");
        println!("the guest is ready after {:.1} s", begin.elapsed().as_secs_f64());
        Ok(guest)
    }

    /// Runs shell commands to their end; gives what they print.
    pub fn run(&self, commands: &str) -> Result<String> {
        self.start(commands)?.output()
    }

    /// Starts shell commands.
    pub fn start(&self, commands: &str) -> Result<Running> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.control)).context("reaching the guest")?;
        stream.set_read_timeout(Some(COMMAND_LIMIT))?;
        stream.write_all(format!("{{ {commands} ; }} 2>&1 </dev/null; exit\n").as_bytes())?;
        Ok(Running { output: BufReader::new(stream), seen: String::new() })
    }

    /// A port for the next server in the guest, and the port of this host that leads to it.
    pub fn port(&mut self) -> (u16, u16) {
        self.next = (self.next + 1) % self.ports.len();
        self.ports[self.next]
    }

    /// A port that no other server in the guest gets.
    pub fn reserve_port(&mut self) -> (u16, u16) {
        self.ports.remove(0)
    }

    /// What the kernel said since the last call.
    pub fn kernel_log(&self) -> Result<String> {
        self.run("dmesg -c")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Commands that run in the guest.
pub struct Running {
    output: BufReader<TcpStream>,
    seen: String,
}

impl Running {
    /// Waits for a line that contains `text`.
    pub fn wait_line(&mut self, text: &str) -> Result<()> {
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).with_context(|| format!("waiting for {text:?}"))?;
            self.seen += &line;
            ensure!(count > 0, "the guest ended without {text:?}: {}", self.seen.trim());
            if line.contains(text) {
                return Ok(());
            }
        }
    }

    /// Waits for the end; gives all that was printed.
    pub fn output(mut self) -> Result<String> {
        let mut bytes = Vec::new();
        self.output.read_to_end(&mut bytes).context("waiting for the guest")?;
        Ok(self.seen + &String::from_utf8_lossy(&bytes))
    }

    /// Waits for the end of a program that says "ok" in its last line.
    pub fn success(self) -> Result<String> {
        let output = self.output()?;
        ensure!(output.lines().last() == Some("ok"), "in the guest: {}", output.trim());
        Ok(output)
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

const SERVER_PORTS: u16 = 8;
/// Without hardware help, and on a busy machine.
const BOOT_LIMIT: Duration = Duration::from_secs(400);
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
