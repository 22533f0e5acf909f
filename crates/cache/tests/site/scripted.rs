//! An origin that answers as a test says.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// What the origin was asked.
#[derive(Debug, Clone)]
pub struct Question {
    pub method: String,
    pub path: String,
    pub headers: HashMap<String, String>,
}

/// The origin.
pub struct Scripted {
    pub address: String,
    questions: Arc<Mutex<Vec<Question>>>,
    under_way: Arc<AtomicUsize>,
}

impl Scripted {
    /// `answer` makes the headers and the body of an answer, or `None` to close the connection.
    pub fn start(answer: impl Fn(&Question) -> Option<(String, String)> + Send + Sync + 'static) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (questions, under_way) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (answer, asked, counted) = (Arc::new(answer), questions.clone(), under_way.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, asked, counted) = (answer.clone(), asked.clone(), counted.clone());
                thread::spawn(move || {
                    let mut input = BufReader::new(&stream);
                    while let Some(question) = hear(&mut input) {
                        asked.lock().unwrap().push(question.clone());
                        counted.fetch_add(1, Ordering::SeqCst);
                        let said = answer(&question);
                        counted.fetch_sub(1, Ordering::SeqCst);
                        let Some((headers, body)) = said else { return };
                        say(&stream, &question, &headers, &body);
                    }
                });
            }
        });
        Scripted { address, questions, under_way }
    }

    /// What it was asked so far.
    pub fn questions(&self) -> Vec<Question> {
        self.questions.lock().unwrap().clone()
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.questions().iter().filter(|question| question.path == path).count()
    }

    /// Questions that it has not answered yet.
    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }
}

fn hear(input: &mut impl BufRead) -> Option<Question> {
    let (mut first, mut headers) = (String::new(), HashMap::new());
    input.read_line(&mut first).ok().filter(|count| *count > 0)?;
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_string());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    input.read_exact(&mut vec![0; length]).ok()?;
    let mut words = first.split(' ').map(str::to_string);
    Some(Question { method: words.next()?, path: words.next()?, headers })
}

fn say(mut stream: &TcpStream, question: &Question, headers: &str, body: &str) {
    let (status, headers) = headers.split_once('\n').unwrap_or((headers, ""));
    let headers: String = headers.lines().map(|line| format!("{line}\r\n")).collect();
    let body = if question.method == "HEAD" { "" } else { body };
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len());
    // The proxy may have gone.
    let _ = stream.write_all(answer.as_bytes());
}
