//! Tests that run in namespaces of their own, with an empty /run and a loopback interface, and with Debian's rpcbind if they want
//! it, which ends with them.

use std::path::Path;
use std::process::Command;

const INSIDE: &str = "SIDESTEP_RPC_INSIDE";

const PREPARE: &str =
    "mount -t tmpfs none /run && mount -t proc proc /proc && ip link set lo up && mkdir -p /run/rpcbind || exit";

/// rpcbind listens on its UNIX socket first, and on TCP port 111 some milliseconds later.
const WITH_RPCBIND: &str = "{ rpcbind -f & } &&
    for i in $(seq 500); do [ -S /run/rpcbind.sock ] && grep -q ':006F .* 0A ' /proc/net/tcp && break; sleep 0.02; done
    \"$@\"; status=$?; kill $!; exit $status";

const ALONE: &str = "exec \"$@\"";

/// Runs `inside` in namespaces, with rpcbind if that is among the tools: this test program runs again there, for this test alone. It is left out where these tools are
/// not installed, or the user is not root.
pub fn run(test: &str, tools: &[&str], inside: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let here =
        |name: &str| ["/usr/sbin", "/sbin", "/usr/bin"].iter().any(|folder| Path::new(folder).join(name).exists());
    let wanted = ["unshare", "ip"].iter().chain(tools);
    if !rustix::process::geteuid().is_root() || !wanted.clone().all(|name| here(name)) {
        eprintln!("left out: it takes root, {}", wanted.copied().collect::<Vec<_>>().join(", "));
        return;
    }
    let script = [PREPARE, if tools.contains(&"rpcbind") { WITH_RPCBIND } else { ALONE }].join("\n");
    let output = Command::new("unshare")
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{said}");
}
