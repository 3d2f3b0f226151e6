//! A small HTTP server on this machine that can misbehave.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// One request, as far as the tests care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// First byte asked for.
    pub(crate) from: Option<usize>,
}

/// Answers: status line, headers and body, written as they are; the connection is closed
/// afterwards.
pub(crate) type Answer = Vec<u8>;

pub(crate) struct Server {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Serves until the process ends; `answer` is told how many requests came before.
    pub(crate) fn start(answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(request) = read(&stream) {
                    let mut log = log.lock().expect("no test panics with the lock");
                    let answer = answer(log.len(), &request);
                    log.push(request);
                    drop(log);
                    // The client may hang up early on purpose.
                    let _ = (&stream).write_all(&answer);
                }
            }
        });
        Self { address, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no test panics with the lock").clone()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let mut from = None;
    for line in lines {
        let line = line.ok()?.to_ascii_lowercase();
        if line.is_empty() {
            return Some(Request { path, from });
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.split('-').next()?.parse().ok();
        }
    }
    None
}

pub(crate) fn status(line: &str) -> Answer {
    format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}

pub(crate) fn redirect(to: &str) -> Answer {
    format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}

/// The whole body, whatever was asked for; only the first `sent` bytes arrive.
pub(crate) fn whole(body: &[u8], sent: usize) -> Answer {
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).into_bytes();
    answer.extend(&body[..sent]);
    answer
}

/// What was asked for, from where it was asked for.
pub(crate) fn partial(body: &[u8], request: &Request, sent: usize) -> Answer {
    let Some(from) = request.from else { return whole(body, sent) };
    let rest = &body[from..];
    let mut answer = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{}/{}\r\nContent-Length: {}\r\nConnection: \
         close\r\n\r\n",
        body.len() - 1,
        body.len(),
        rest.len()
    )
    .into_bytes();
    answer.extend(&rest[..sent.min(rest.len())]);
    answer
}
