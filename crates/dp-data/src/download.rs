//! Verified, resumable download of one published file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::Agent;
use ureq::http::{StatusCode, header};

use crate::download_progress::DownloadProgress;
use crate::error::{Attempt, DataError};
use crate::manifest::ManifestFile;
use crate::verified_file::VerifiedFile;

/// Without a network the command must go on within seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A server that takes the connection and then says nothing.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);
/// One request; a slower transfer is cut and resumed.
const BODY_TIMEOUT: Duration = Duration::from_mins(5);
/// Requests to one address that bring nothing new before the next address is tried.
const FRUITLESS_REQUESTS: usize = 2;

/// Downloads `file` into `folder`, trying its addresses in order.
///
/// The transfer goes to `FILE.part`, which a later call continues; it is renamed to `FILE` once
/// size and sha256 agree with the manifest. Two processes do not write the same part at once.
///
/// **Guarantee.** If `folder/FILE` exists afterwards, its content is the published one.
///
/// # Errors
/// [`DataError::Io`] if the folder cannot be written. Addresses that fail are returned as attempts.
pub(crate) fn fetch(
    file: &ManifestFile,
    folder: &Path,
    progress: &dyn DownloadProgress,
) -> Result<Result<PathBuf, Vec<Attempt>>, DataError> {
    fs::create_dir_all(folder).map_err(DataError::io("create", folder))?;
    let target = folder.join(&file.name);
    let path = folder.join(format!("{}.part", file.name));
    let part = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(DataError::io("write", &path))?;
    part.lock().map_err(DataError::io("lock", &path))?;
    // Another process may have finished while this one waited.
    if VerifiedFile::read(&target, file).is_ok() {
        return Ok(Ok(target));
    }
    let agent = agent();
    let mut failed = Vec::new();
    let mut part = PartialFile { file, handle: part };
    let outcome = 'addresses: {
        for url in &file.urls {
            match part.complete_from(&agent, url, progress) {
                Ok(()) => break 'addresses Ok(target.clone()),
                Err(Failure::Address(reason)) => failed.push(Attempt { place: url.clone(), reason }),
                Err(Failure::Disk(error)) => return Err(DataError::io("write", &path)(error)),
            }
        }
        Err(failed)
    };
    if outcome.is_ok() {
        fs::rename(&path, &target).map_err(DataError::io("rename", &path))?;
    }
    Ok(outcome)
}

fn agent() -> Agent {
    Agent::config_builder()
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_recv_body(Some(BODY_TIMEOUT))
        .http_status_as_error(false)
        .build()
        .into()
}

enum Failure {
    /// This address cannot serve.
    Address(String),
    /// No address can.
    Disk(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// The file that grows.
struct PartialFile<'a> {
    file: &'a ManifestFile,
    handle: File,
}

impl PartialFile<'_> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.handle.metadata()?.len())
    }

    /// Requests until the file is complete and verified. Every request that brings something new
    /// may be followed by another.
    fn complete_from(&mut self, agent: &Agent, url: &str, progress: &dyn DownloadProgress) -> Result<(), Failure> {
        let mut fruitless = 0;
        let mut rejected = false;
        loop {
            let before = self.len()?;
            let sent = if before < self.file.bytes {
                progress.started(&self.file.name, self.file.bytes, before);
                let sent = self.request(agent, url, before, progress);
                progress.finished();
                sent
            } else {
                Ok(())
            };
            let after = self.len()?;
            if after >= self.file.bytes {
                if self.verified()? {
                    return Ok(self.handle.sync_all()?);
                }
                self.handle.set_len(0)?;
                // Bytes of an earlier attempt may be to blame: once more, from nothing.
                if before == 0 || rejected {
                    return Err(Failure::Address("its content has another checksum".into()));
                }
                rejected = true;
            } else if after <= before {
                fruitless += 1;
                match sent {
                    Err(failure) if before == 0 || fruitless == FRUITLESS_REQUESTS => return Err(failure),
                    Ok(()) if fruitless == FRUITLESS_REQUESTS => {
                        return Err(Failure::Address("the transfer stopped".into()));
                    }
                    _ => {}
                }
            }
        }
    }

    /// One request for the rest of the file.
    fn request(&mut self, agent: &Agent, url: &str, from: u64, progress: &dyn DownloadProgress) -> Result<(), Failure> {
        let mut request = agent.get(url).header(header::ACCEPT_ENCODING, "identity");
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        let mut response = request.call().map_err(|error| Failure::Address(error.to_string()))?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if starts_at(&response, from) => self.handle.seek(SeekFrom::Start(from))?,
            StatusCode::OK => {
                self.handle.set_len(0)?;
                self.handle.seek(SeekFrom::Start(0))?
            }
            StatusCode::RANGE_NOT_SATISFIABLE | StatusCode::PARTIAL_CONTENT => {
                self.handle.set_len(0)?;
                return Err(Failure::Address("it cannot continue a transfer".into()));
            }
            status => return Err(Failure::Address(format!("answered {status}"))),
        };
        let mut body = response.body_mut().as_reader();
        let mut buffer = vec![0; 64 * 1024];
        let mut len = self.len()?;
        loop {
            let n = match body.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(error) => return Err(Failure::Address(error.to_string())),
            };
            len += n as u64;
            if len > self.file.bytes {
                self.handle.set_len(0)?;
                return Err(Failure::Address(format!("it is longer than {} bytes", self.file.bytes)));
            }
            self.handle.write_all(&buffer[..n])?;
            progress.advanced(n as u64);
        }
    }

    fn verified(&mut self) -> io::Result<bool> {
        self.handle.seek(SeekFrom::Start(0))?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match self.handle.read(&mut buffer)? {
                0 => break,
                n => hasher.update(&buffer[..n]),
            }
        }
        Ok(hex::encode(hasher.finalize()) == self.file.sha256)
    }
}

/// Whether a partial answer continues where our part ends (`Content-Range: bytes FROM-TO/TOTAL`).
fn starts_at(response: &ureq::http::Response<ureq::Body>, from: u64) -> bool {
    response
        .headers()
        .get(header::CONTENT_RANGE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("bytes "))
        .and_then(|value| value.split('-').next())
        .is_some_and(|start| start.parse() == Ok(from))
}
