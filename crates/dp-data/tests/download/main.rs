//! Downloads from a server on this machine: resumed, redirected, refused, damaged.

mod server;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dp_data::{DataError, DataLocator, DownloadProgress, Located, Manifest};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use self::server::{Server, partial, redirect, status, whole};

fn body() -> Vec<u8> {
    (0..100_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect()
}

fn manifest(urls: &[&str]) -> Manifest {
    let body = body();
    let text = format!(
        "name = 'numbers'\ntitle = 't'\nsource = 's'\nlicence = 'l'\nredistributable = true\nrecords = 1\nobtain = \
         'o'\n[[files]]\nname = 'numbers.bin'\nbytes = {}\nsha256 = '{}'\nrecords = 1\nurls = {urls:?}\n",
        body.len(),
        hex::encode(Sha256::digest(&body))
    );
    Manifest::parse("numbers", &text).expect("well formed")
}

/// Content of the one file, or the attempts.
fn locate(cache: &Path, urls: &[&str]) -> Result<Vec<u8>, Vec<String>> {
    match DataLocator::new(cache).locate(&manifest(urls)).expect("the disk works") {
        Located::Real(mut real) => Ok(real.files.remove(0).contents),
        Located::Nowhere(attempts) => Err(attempts.iter().map(ToString::to_string).collect()),
    }
}

fn cache() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn a_download_is_cached_and_renamed() {
    let (cache, server) = (cache(), Server::start(|_, request| partial(&body(), request, 100_000)));
    let urls = [server.address.as_str()];
    assert_eq!(locate(cache.path(), &urls).unwrap(), body());
    assert_eq!(locate(cache.path(), &urls).unwrap(), body());
    assert_eq!(server.requests().len(), 1);
    let names: Vec<_> = fs::read_dir(cache.path().join("numbers")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["numbers.bin"]);
}

#[test]
fn a_cut_transfer_continues_where_it_stopped() {
    let cache = cache();
    let server = Server::start(|_, request| partial(&body(), request, 30_000));
    assert_eq!(locate(cache.path(), &[&server.address]).unwrap(), body());
    let from: Vec<_> = server.requests().iter().map(|request| request.from).collect();
    assert_eq!(from, [None, Some(30_000), Some(60_000), Some(90_000)]);
}

#[test]
fn a_later_run_continues_an_earlier_one() {
    let cache = cache();
    let down = Server::start(|n, _| if n == 0 { whole(&body(), 40_000) } else { status("503 Service Unavailable") });
    let attempts = locate(cache.path(), &[&down.address]).unwrap_err();
    assert!(attempts[1].ends_with("answered 503 Service Unavailable"), "{attempts:?}");
    let up = Server::start(|_, request| partial(&body(), request, 100_000));
    assert_eq!(locate(cache.path(), &[&up.address]).unwrap(), body());
    assert_eq!(up.requests()[0].from, Some(40_000));
}

#[test]
fn a_server_without_ranges_starts_again() {
    let cache = cache();
    let server = Server::start(|n, _| whole(&body(), if n == 0 { 40_000 } else { 100_000 }));
    assert_eq!(locate(cache.path(), &[&server.address]).unwrap(), body());
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_server_that_always_stops_early_is_given_up() {
    let cache = cache();
    let server = Server::start(|_, _| whole(&body(), 40_000));
    assert!(locate(cache.path(), &[&server.address]).is_err());
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn redirects_are_followed_with_the_range() {
    let cache = cache();
    let target = Server::start(|_, request| partial(&body(), request, 60_000));
    let to = format!("{}/elsewhere", target.address);
    let server = Server::start(move |_, _| redirect(&to));
    assert_eq!(locate(cache.path(), &[&server.address]).unwrap(), body());
    assert_eq!(target.requests()[1].from, Some(60_000));
    assert_eq!(target.requests()[1].path, "/elsewhere");
}

#[test]
fn another_checksum_and_404_go_to_the_next_address() {
    let cache = cache();
    let wrong = Server::start(|_, _| whole(&vec![7; 100_000], 100_000));
    let gone = Server::start(|_, _| status("404 Not Found"));
    let long = Server::start(|_, _| whole(&vec![7; 200_000], 200_000));
    let urls = [&wrong, &gone, &long].map(|server| server.address.as_str());
    let attempts = locate(cache.path(), &urls).unwrap_err();
    assert_eq!(attempts.len(), 4);
    assert!(attempts[1].ends_with(": its content has another checksum"), "{attempts:?}");
    assert!(attempts[2].ends_with(": answered 404 Not Found"), "{attempts:?}");
    assert!(attempts[3].ends_with(": it is longer than 100000 bytes"), "{attempts:?}");
    assert!(!cache.path().join("numbers/numbers.bin").exists());

    let right = Server::start(|_, request| partial(&body(), request, 100_000));
    let urls = [&wrong, &right].map(|server| server.address.as_str());
    assert_eq!(locate(cache.path(), &urls).unwrap(), body());
}

#[test]
fn damaged_bytes_of_an_earlier_attempt_are_thrown_away() {
    let cache = cache();
    fs::create_dir(cache.path().join("numbers")).unwrap();
    for damaged in [vec![1; 40_000], vec![1; 100_000], vec![1; 150_000]] {
        let _ = fs::remove_file(cache.path().join("numbers/numbers.bin"));
        fs::write(cache.path().join("numbers/numbers.bin.part"), damaged).unwrap();
        let server = Server::start(|_, request| partial(&body(), request, 100_000));
        assert_eq!(locate(cache.path(), &[&server.address]).unwrap(), body());
    }
}

#[test]
fn a_damaged_file_in_the_cache_is_fetched_again() {
    let cache = cache();
    fs::create_dir(cache.path().join("numbers")).unwrap();
    fs::write(cache.path().join("numbers/numbers.bin"), "damaged").unwrap();
    let server = Server::start(|_, request| partial(&body(), request, 100_000));
    assert_eq!(locate(cache.path(), &[&server.address]).unwrap(), body());
}

#[test]
fn two_at_once_fetch_once() {
    let cache = cache();
    let server = Server::start(|_, request| partial(&body(), request, 100_000));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(locate(cache.path(), &[&server.address]).unwrap(), body()));
        }
    });
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn without_a_network_it_goes_on_at_once() {
    let cache = cache();
    // Port 1 is closed: the refusal stands for an unreachable network.
    let urls = ["http://127.0.0.1:1/numbers.bin"];
    let start = Instant::now();
    let attempts = locate(cache.path(), &urls).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(3));
    assert!(attempts[1].starts_with("http://127.0.0.1:1/numbers.bin: "), "{attempts:?}");

    let mut locator = DataLocator::new(cache.path());
    (locator.require_real, locator.offline) = (true, true);
    insta::assert_snapshot!(locator.locate(&manifest(&urls)).unwrap_err(), @r"
    no real data for `numbers`:
      - cache: no file of this data set
      - download: switched off
    ");
}

#[test]
fn what_may_not_be_downloaded_is_not() {
    let cache = cache();
    let mut locator = DataLocator::new(cache.path());
    locator.require_real = true;
    insta::assert_snapshot!(locator.locate(&manifest(&[])).unwrap_err(), @r"
    no real data for `numbers`:
      - cache: no file of this data set
      - download: `numbers.bin` cannot be downloaded freely
    ");
    assert!(matches!(locator.locate(&manifest(&[])), Err(DataError::NotFound { .. })));
}

#[derive(Default)]
struct Counter {
    started: AtomicU64,
    bytes: AtomicU64,
    finished: AtomicU64,
}

impl DownloadProgress for Counter {
    fn started(&self, file: &str, total: u64, _already: u64) {
        assert_eq!((file, total), ("numbers.bin", 100_000));
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    fn advanced(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn finished(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn progress_counts_every_byte() {
    let cache = cache();
    let server = Server::start(|_, request| partial(&body(), request, 60_000));
    let counter = Arc::new(Counter::default());
    let mut locator = DataLocator::new(cache.path());
    locator.progress = counter.clone();
    locator.locate(&manifest(&[&server.address])).unwrap();
    assert_eq!(counter.bytes.load(Ordering::Relaxed), 100_000);
    assert_eq!(counter.started.load(Ordering::Relaxed), 2);
    assert_eq!(counter.finished.load(Ordering::Relaxed), 2);
}
