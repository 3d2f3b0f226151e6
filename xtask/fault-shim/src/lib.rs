//! A library that `LD_PRELOAD` puts between a program and the C library: the n-th call that changes
//! a file system fails, or is the last.
//!
//! | variable | meaning |
//! |---|---|
//! | `FAULT_LOG` | a file that grows by one byte for each call: its length is their number |
//! | `FAULT_AT` | the number of the call, from 1 |
//! | `FAULT_DO` | `kill` (half of a write is still done), `error` (EIO, once), `full` (ENOSPC from then on), `read-only` (EROFS from then on) |
//! | `FAULT_CLOCK` | set: the time of day jumps by years, to and fro, from call to call |
//!
//! Calls are writes to regular files, creation, truncation, renaming, linking and removal of files
//! and folders, and flushes to the disk.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "functions of the C library are replaced and called")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_char, c_int, c_uint, c_void, mode_t, off_t, size_t, ssize_t, timespec};

/// What a call does besides failing.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Needs room on the disk.
    Grows,
    /// Needs none.
    Other,
}

#[derive(Clone, Copy, PartialEq)]
enum Deed {
    Nothing,
    Kill,
    Error,
    Full,
    ReadOnly,
}

struct Setting {
    at: u64,
    deed: Deed,
    log: c_int,
}

static CALLS: AtomicU64 = AtomicU64::new(0);
static TICKS: AtomicU64 = AtomicU64::new(0);
static SETTING: OnceLock<Setting> = OnceLock::new();

/// The C library's function of this name.
macro_rules! real {
    ($name:ident as $signature:ty) => {{
        static REAL: OnceLock<usize> = OnceLock::new();
        let address = *REAL.get_or_init(|| {
            // SAFETY: the name ends with a zero.
            unsafe { libc::dlsym(libc::RTLD_NEXT, concat!(stringify!($name), "\0").as_ptr().cast()) as usize }
        });
        // SAFETY: the C library has this function, with this signature.
        unsafe { std::mem::transmute::<usize, $signature>(address) }
    }};
}

type Write = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn setting() -> &'static Setting {
    SETTING.get_or_init(|| {
        let deed = match variable("FAULT_DO").as_deref() {
            Some("kill") => Deed::Kill,
            Some("error") => Deed::Error,
            Some("full") => Deed::Full,
            Some("read-only") => Deed::ReadOnly,
            _ => Deed::Nothing,
        };
        let at = variable("FAULT_AT").and_then(|at| at.parse().ok()).unwrap_or(u64::MAX);
        let log = variable("FAULT_LOG").and_then(|path| std::ffi::CString::new(path).ok()).map_or(-1, |path| {
            let open = real!(open64 as Open);
            // SAFETY: the path ends with a zero.
            unsafe { open(path.as_ptr(), libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC, 0o600) }
        });
        Setting { at, deed, log }
    })
}

/// Counts a call; `Some(errno)` if it must fail. `half` is done before a kill.
fn fault(kind: Kind, half: impl FnOnce()) -> Option<c_int> {
    let setting = setting();
    let number = CALLS.fetch_add(1, Ordering::SeqCst) + 1;
    if setting.log >= 0 {
        let write = real!(write as Write);
        // SAFETY: one byte of a constant.
        unsafe { write(setting.log, b".".as_ptr().cast(), 1) };
    }
    match setting.deed {
        Deed::Kill if number == setting.at => {
            half();
            // SAFETY: ends this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            None
        }
        Deed::Error if number == setting.at => Some(libc::EIO),
        Deed::Full if number >= setting.at && kind == Kind::Grows => Some(libc::ENOSPC),
        Deed::ReadOnly if number >= setting.at => Some(libc::EROFS),
        _ => None,
    }
}

fn fail(errno: c_int) {
    // SAFETY: the address of this thread's error number.
    unsafe { *libc::__errno_location() = errno };
}

fn is_regular(file: c_int) -> bool {
    // What a program says is no file of its own, wherever it goes.
    if file <= libc::STDERR_FILENO {
        return false;
    }
    let mut found = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: a structure of the right size, filled with zeros.
    unsafe { libc::fstat(file, found.as_mut_ptr()) == 0 && found.assume_init().st_mode & libc::S_IFMT == libc::S_IFREG }
}

/// A function that fails with -1, and calls the real one else.
macro_rules! guarded {
    ($kind:expr, $(if $condition:expr;)? fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $(, half $half:expr)?) => {
        /// As the C library's.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            let real = real!($name as unsafe extern "C" fn($($type),*) -> $result);
            let counts = true $(&& $condition)?;
            if counts && let Some(errno) = fault($kind, || { $(($half)(real);)? }) {
                fail(errno);
                return -1;
            }
            // SAFETY: the caller's arguments.
            unsafe { real($($argument),*) }
        }
    };
}

guarded!(Kind::Grows, if is_regular(file); fn write(file: c_int, bytes: *const c_void, n: size_t) -> ssize_t,
    // SAFETY: half of the caller's bytes.
    half |real: Write| { let _ = unsafe { real(file, bytes, n / 2) }; });
guarded!(Kind::Grows, if is_regular(file); fn pwrite(file: c_int, bytes: *const c_void, n: size_t, at: off_t) -> ssize_t);
guarded!(Kind::Grows, if is_regular(file); fn pwrite64(file: c_int, bytes: *const c_void, n: size_t, at: off_t) -> ssize_t);
guarded!(Kind::Grows, if flags & libc::O_CREAT != 0; fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int);
guarded!(Kind::Grows, if flags & libc::O_CREAT != 0; fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int);
guarded!(Kind::Other, fn rename(from: *const c_char, to: *const c_char) -> c_int);
guarded!(Kind::Grows, fn link(from: *const c_char, to: *const c_char) -> c_int);
guarded!(Kind::Grows, fn linkat(from: c_int, name: *const c_char, to: c_int, new: *const c_char, flags: c_int) -> c_int);
guarded!(Kind::Other, fn unlink(path: *const c_char) -> c_int);
guarded!(Kind::Other, fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int);
guarded!(Kind::Grows, fn mkdir(path: *const c_char, mode: mode_t) -> c_int);
guarded!(Kind::Other, fn rmdir(path: *const c_char) -> c_int);
guarded!(Kind::Other, fn fsync(file: c_int) -> c_int);
guarded!(Kind::Other, fn fdatasync(file: c_int) -> c_int);
guarded!(Kind::Other, fn ftruncate(file: c_int, n: off_t) -> c_int);
guarded!(Kind::Other, fn ftruncate64(file: c_int, n: off_t) -> c_int);

/// Seconds by which the time of day is off at this call.
fn jump() -> libc::time_t {
    const YEARS: libc::time_t = 20 * 365 * 24 * 3_600;
    static JUMPS: OnceLock<bool> = OnceLock::new();
    if !*JUMPS.get_or_init(|| variable("FAULT_CLOCK").is_some()) {
        return 0;
    }
    if TICKS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { -YEARS } else { YEARS }
}

/// As the C library's, but that the time of day may jump.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut timespec) -> c_int {
    let real = real!(clock_gettime as unsafe extern "C" fn(libc::clockid_t, *mut timespec) -> c_int);
    // SAFETY: the caller's arguments.
    let answer = unsafe { real(clock, time) };
    if answer == 0 && clock == libc::CLOCK_REALTIME {
        // SAFETY: the C library has just written it.
        unsafe { (*time).tv_sec += jump() };
    }
    answer
}

/// As the C library's, but that the time of day may jump.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut libc::timeval, zone: *mut c_void) -> c_int {
    let real = real!(gettimeofday as unsafe extern "C" fn(*mut libc::timeval, *mut c_void) -> c_int);
    // SAFETY: the caller's arguments.
    let answer = unsafe { real(time, zone) };
    if answer == 0 && !time.is_null() {
        // SAFETY: the C library has just written it.
        unsafe { (*time).tv_sec += jump() };
    }
    answer
}
