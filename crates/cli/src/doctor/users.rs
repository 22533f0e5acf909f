//! With whose programs those of this user may be connected: what the administrator of the host allows, and `--users`.

use sidestep_sockets::config::{Users, config, users::HOST};
use sidestep_sys::user;

use super::{Finding, State};
use crate::census::owner;

/// Looks.
pub fn look() -> Finding {
    judge(Users::told_by_host(), &config().users, user::own())
}

/// What follows for this user from what the host says, and what its programs allow.
fn judge(host: Result<Option<Users>, String>, own: &Users, user: Option<u32>) -> Finding {
    let limited = |found: String, remedy| {
        let consequence = "Connections with programs of other users stay on TCP.";
        Finding::new("users", State::Limited, found, consequence, remedy)
    };
    let change = "Let the administrator write `any`, or the users that may meet, into /etc/sidestep/users.";
    let option = "Set --users (SIDESTEP_USERS) to `any`, or to the users that may meet.";
    let is_named = |users: &[u32]| user.is_some_and(|user| users.contains(&user));
    match (host, own) {
        (Err(why), _) => limited(format!("{HOST} cannot be understood ({why}), so users are kept apart"), change),
        (Ok(Some(Users::Same)), _) => limited(format!("{HOST} keeps users apart"), change),
        (Ok(Some(Users::Listed(users))), _) if !is_named(&users) => {
            limited(format!("{HOST} lets {} meet, not this user", names(&users)), change)
        }
        (Ok(_), Users::Same) => limited("--users same keeps programs of this user apart".to_owned(), option),
        (Ok(Some(Users::Listed(users))), own) => good(format!("{HOST} lets {} meet{}", names(&users), limits(own))),
        (Ok(Some(Users::Any)), own) => good(format!("{HOST} lets programs of all users meet{}", limits(own))),
        (Ok(None), own) => good(format!("programs of all users may meet, as there is no {HOST}{}", limits(own))),
    }
}

fn good(found: String) -> Finding {
    Finding::new("users", State::Good, found, "", "")
}

/// What `--users` leaves of it.
fn limits(own: &Users) -> String {
    match own {
        Users::Listed(users) => format!("; --users lets those of this user meet {}", names(users)),
        Users::Same | Users::Any => String::new(),
    }
}

fn names(users: &[u32]) -> String {
    let names: Vec<String> = users.iter().map(|user| owner::shown(*user)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_and_the_user_allow_is_told() {
        let (any, listed) = (Users::Any, Users::Listed(vec![7, 65_533]));
        let cases = [
            (Ok(None), &any, State::Good, "there is no /etc/sidestep/users"),
            (Ok(Some(Users::Any)), &any, State::Good, "all users meet"),
            (Ok(Some(listed.clone())), &any, State::Good, "65533 meet"),
            (Ok(Some(Users::Any)), &listed, State::Good, "--users lets those of this user meet"),
            (Ok(Some(Users::Listed(vec![65_533]))), &any, State::Limited, "not this user"),
            (Ok(Some(Users::Same)), &any, State::Limited, "keeps users apart"),
            (Ok(None), &Users::Same, State::Limited, "--users same"),
            (Err("no user is called x".to_owned()), &any, State::Limited, "no user is called x"),
        ];
        for (host, own, state, part) in cases {
            let shown = format!("{host:?} {own}");
            let finding = judge(host, own, Some(7));
            assert!(finding.state == state && finding.found.contains(part), "{shown}: {finding:?}");
        }
        assert_eq!(judge(Ok(Some(listed)), &any, None).state, State::Limited, "who has no number is nobody");
    }
}
