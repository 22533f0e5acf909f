//! The file that is put beside a unit.

use std::path::Path;

use super::unit::Unit;

/// Its name, in the folder of the unit's drop-ins.
pub const FILE: &str = "sidestep.conf";

/// What has to be added to a unit.
pub fn text(unit: &Unit, library: &Path) -> String {
    let library = library.display();
    let mut lines = vec![
        "# Made by `sidestep init-service`. Without this file the service runs as before.".to_owned(),
        "[Service]".to_owned(),
    ];
    match unit.variable("LD_PRELOAD").filter(|before| !before.is_empty()) {
        // This setting replaces that of the unit.
        Some(before) => lines.push(format!("Environment=\"LD_PRELOAD={library}:{before}\"")),
        None => lines.push(format!("Environment=LD_PRELOAD={library}")),
    }
    lines.push("# Options are variables, as in docs/operating.md:".to_owned());
    lines.push("#Environment=SIDESTEP_PROFILE=latency".to_owned());
    if unit.last("RestrictAddressFamilies").is_some() {
        lines.push("# The two ends of a connection meet over UNIX sockets, and ask the kernel about it.".into());
        lines.push("RestrictAddressFamilies=AF_UNIX AF_NETLINK".into());
    }
    if unit.last("SystemCallFilter").is_some() {
        lines.push("# A call that is not allowed fails, instead of ending the service.".into());
        lines.push("SystemCallErrorNumber=EPERM".into());
    }
    if unit.last("NoExecPaths").is_some() {
        lines.push(format!("ExecPaths={library}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restrictions_of_a_unit_are_answered() {
        let of = |settings: &str| text(&Unit::new("redis.service", &[settings.to_owned()]), Path::new("/lib/x.so"));
        let plain = of("[Service]\n");
        assert!(plain.contains("\nEnvironment=LD_PRELOAD=/lib/x.so\n"), "{plain}");
        assert!(!plain.contains("Restrict") && !plain.contains("SystemCall"), "{plain}");
        let strict = of("[Service]\nUser=redis\nNoExecPaths=/\nSystemCallFilter=@system-service\n\
                         RestrictAddressFamilies=AF_INET\nEnvironment=A=1 \"LD_PRELOAD=/lib/j.so /lib/k.so\"\n");
        for line in [
            "RestrictAddressFamilies=AF_UNIX AF_NETLINK",
            "SystemCallErrorNumber=EPERM",
            "ExecPaths=/lib/x.so",
            "Environment=\"LD_PRELOAD=/lib/x.so:/lib/j.so /lib/k.so\"",
        ] {
            assert!(strict.lines().any(|own| own == line), "{line} in\n{strict}");
        }
    }
}
