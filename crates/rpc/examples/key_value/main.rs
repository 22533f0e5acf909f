//! A key-value service, over any transport:
//!
//! ```text
//! key_value serve tcp:127.0.0.1:7000      (or udp:..., rdma:..., unix:PATH, shm:NAME, vi:NAME)
//! key_value put tcp:127.0.0.1:7000 KEY VALUE
//! key_value get tcp:127.0.0.1:7000 KEY
//! ```
//!
//! `kv.rs` is what `sidestep idl kv.x` has made of `kv.x`.

#[rustfmt::skip]
#[allow(dead_code)]
mod kv;

use std::collections::HashMap;
use std::error::Error;
use std::sync::RwLock;

use kv::{KvV1Client, KvV1Server, KvV1Service, Lookup, Pair};
use sidestep_rpc::{Call, Refusal, Server};

#[derive(Default)]
struct Store(RwLock<HashMap<String, Vec<u8>>>);

impl KvV1Service for Store {
    fn put(&self, _: &Call<'_>, pair: Pair) -> Result<(), Refusal> {
        let mut values = self.0.write().map_err(|_| Refusal::SystemError)?;
        values.insert(pair.name, pair.content);
        Ok(())
    }

    fn get(&self, _: &Call<'_>, key: &str) -> Result<Lookup, Refusal> {
        let values = self.0.read().map_err(|_| Refusal::SystemError)?;
        Ok(values.get(key).map_or(Lookup::NotFound, |value| Lookup::Ok(value.clone())))
    }

    fn length(&self, _: &Call<'_>) -> Result<u32, Refusal> {
        Ok(self.0.read().map_err(|_| Refusal::SystemError)?.len() as u32)
    }
}

fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    let server = Server::builder().service(KvV1Server(Store::default())).listen(address)?.start()?;
    let port = server.addresses().next().map(|address| address.to_string()).unwrap_or_default();
    println!("serving {address} {port}");
    loop {
        std::thread::park();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", address] => return serve(address),
        ["put", address, key, value] => {
            let client = KvV1Client::connect(address)?;
            client.put(&Pair { name: key.into(), content: value.into() })?;
            println!("{} keys", client.length()?);
        }
        ["get", address, key] => match KvV1Client::connect(address)?.get(key)? {
            Lookup::Ok(value) => println!("{}", String::from_utf8_lossy(&value)),
            Lookup::NotFound => println!("{key} is not here"),
        },
        _ => return Err("usage: key_value serve ADDRESS | put ADDRESS KEY VALUE | get ADDRESS KEY".into()),
    }
    Ok(())
}
