//! A server whose page changes with every POST, and proxies that never answer with an old one:
//!
//! ```text
//! guestbook 127.0.0.1:8000 127.0.0.1:8079 &
//! sidestep cache proxy --origin 127.0.0.1:8000 --module 127.0.0.1:8079 --listen 127.0.0.1:8080 &
//! curl -d "Ada was here" http://127.0.0.1:8000/guests     # also past the proxy
//! curl http://127.0.0.1:8080/guests
//! ```
//!
//! Without arguments it chooses its ports, and tells them.

use std::{
    error::Error,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use sidestep_cache::{Lender, application::Application};

const PAGE: &str = "/guests";

fn main() -> Result<(), Box<dyn Error>> {
    let mut addresses = std::env::args().skip(1);
    let mut address = || addresses.next().unwrap_or("127.0.0.1:0".into());
    let listener = TcpListener::bind(address())?;
    let lender = Lender::bind(&address())?;
    println!("pages at {}, versions at {}", listener.local_addr()?, lender.address()?);
    let (documents, page) = (lender.application().clone(), Arc::new(Mutex::new(String::new())));
    thread::spawn(move || lender.serve());
    for stream in listener.incoming().flatten() {
        let (documents, page) = (documents.clone(), page.clone());
        // A client that breaks off is no matter of this server's.
        thread::spawn(move || _ = serve(&stream, &documents, &page));
    }
    Ok(())
}

fn serve(mut stream: &TcpStream, documents: &Application, page: &Mutex<String>) -> Result<(), Box<dyn Error>> {
    let mut input = BufReader::new(stream);
    loop {
        let (mut request, mut line, mut length) = (String::new(), String::new(), 0);
        if input.read_line(&mut request)? == 0 {
            return Ok(());
        }
        while input.read_line(&mut line)? > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse::<u64>()?.min(1000);
            }
            line.clear();
        }
        let (mut entry, method) = (String::new(), request.split(' ').next());
        (&mut input).take(length).read_to_string(&mut entry)?;
        let is_page = request.split(' ').nth(1) == Some(PAGE);
        let answer = match method {
            Some("GET") if is_page => {
                let text = page.lock().map_err(|_| "a thread has panicked")?.clone();
                // A proxy keeps it for a day at most, and only as long as its version stays; others ask each time.
                let kept = "Cache-Control: s-maxage=86400, max-age=0";
                format!("HTTP/1.1 200 OK\r\n{kept}\r\nContent-Length: {}\r\n\r\n{text}", text.len())
            }
            Some("POST") if is_page => {
                let _updating = documents.update(PAGE)?;
                *page.lock().map_err(|_| "a thread has panicked")? += &format!("{entry}\n");
                "HTTP/1.1 204 No Content\r\n\r\n".to_string()
            }
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_string(),
        };
        // Here the update is complete: whoever hears of it finds it through every proxy.
        stream.write_all(answer.as_bytes())?;
    }
}
