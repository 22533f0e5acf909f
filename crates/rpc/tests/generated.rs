//! Generated code: every type survives every transport, and limits are kept.

mod every;

use every::generated::*;
use every::{builder, everything, list, tree};

#[test]
fn every_type_survives_every_transport() {
    let path = std::env::temp_dir().join(format!("sidestep-rpc-{}.sock", std::process::id()));
    let name = format!("shm:rpc-every-{}", std::process::id());
    let server = builder().tcp("127.0.0.1:0").unwrap().udp("127.0.0.1:0").unwrap().unix(&path).unwrap();
    let server = server.rdma("127.0.0.1:0").unwrap().fabric(&name).start().unwrap();
    let sockets: Vec<_> = server.addresses().collect();
    for address in [
        format!("tcp:{}", sockets[0]),
        format!("udp:{}", sockets[1]),
        format!("unix:{}", path.display()),
        format!("rdma:{}", sockets[2]),
        name,
    ] {
        let client = EveryV1Client::connect(&address).unwrap();
        client.every_null().unwrap();
        assert_eq!(client.echo_all(&everything()).unwrap(), everything(), "{address}");
        for outcome in [Outcome::Red(-1), Outcome::Green("g".into()), Outcome::Blue("".into())] {
            assert_eq!(client.echo_outcome(&outcome).unwrap(), outcome);
        }
        for answer in [
            Answer::Case0(Some(everything())),
            Answer::Case0(None),
            Answer::CaseMinus1,
            Answer::Default(17, "because".into()),
        ] {
            assert_eq!(client.echo_answer(&answer).unwrap(), answer);
        }
        for flag in [Flag::True(i64::MAX), Flag::False] {
            assert_eq!(client.echo_flag(&flag).unwrap(), flag);
        }
        assert_eq!(client.echo_string("gruß").unwrap(), "gruß");
        assert_eq!(client.echo_list(&list(&[1, 2, 3])).unwrap(), list(&[1, 2, 3]));
        assert_eq!(client.echo_tree(&tree()).unwrap(), tree());
        let seal = Seal { inner: *b"digest" };
        assert_eq!(client.echo_seal(&seal).unwrap(), seal);
        assert_eq!(client.echo_numbers(&[5, 4]).unwrap(), [5, 4]);
        let second = EveryV2Client::new(client.client().clone());
        assert_eq!(second.sum(40, 2).unwrap(), 42);
        second.null().unwrap();
    }
    drop(server);
    assert!(!path.exists());
}

#[test]
fn limits_are_kept_before_anything_is_sent() {
    let (_server, address) = every::tcp_server();
    let client = EveryV1Client::connect(&address).unwrap();
    let why = |error: sidestep_rpc::Error| {
        assert_eq!(error.to_string(), "the arguments cannot be sent");
        std::error::Error::source(&error).unwrap().to_string()
    };
    let error = client.echo_numbers(&[0; 6]).unwrap_err();
    assert_eq!(why(error), "a length of 6, at most 5 is allowed");
    let error = client.echo_answer(&Answer::Default(0, "not the default".into())).unwrap_err();
    assert_eq!(why(error), "0 is not a value of default of answer");
    let long = list(&[0; 600]);
    assert!(why(client.echo_list(&long).unwrap_err()).contains("nest more than 500 deep"));
    let large = "x".repeat(5 << 20);
    assert!(why(client.echo_string(&large).unwrap_err()).contains("longer than"));
    // The connection is as good as before.
    let large = "x".repeat(3 << 20);
    assert_eq!(client.echo_string(&large).unwrap(), large);
}
