//! A refusal of memory ends the program as the table of exit codes says.
//!
//! Rust's own answer is to abort, and the hook that changes it is not stable. Whoever asks for memory in the
//! program asks here: the system's allocator, and where that has none, a message and an end. Nothing
//! that is kept is at risk, since files are whole or not there. The price: what could go on
//! with less memory ends too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

use fairdp::Exit;

#[global_allocator]
static MEMORY: OrEnd = OrEnd;

static IS_JSON: AtomicBool = AtomicBool::new(false);

const MESSAGE: &str = "error: the system gives no more memory\n";
const JSON: &str = concat!(
    r#"{"code":1,"error":"the system gives no more memory","#,
    r#""meaning":"a file or the machine failed, or a row does not fit","version":1,"where":null}"#,
    "\n"
);

/// Whether it is said for a program.
pub(super) fn answer_as(is_json: bool) {
    IS_JSON.store(is_json, Ordering::Relaxed);
}

struct OrEnd;

#[expect(unsafe_code, reason = "allocators have no safe interface")]
// SAFETY: every call is passed to the system's allocator as it is, and its answer is returned unless it is
// null; then the process ends, and no caller is returned to.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_end(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_end(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_end(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn or_end(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end();
    }
    memory
}

/// Asks for no memory and waits for no lock, which another thread may hold.
#[cold]
#[expect(unsafe_code, reason = "the streams of the standard library have locks")]
fn end() -> ! {
    let write = |stream, text: &str| {
        // SAFETY: the text is that long.
        let _ = unsafe { libc::write(stream, text.as_ptr().cast(), text.len() as _) };
    };
    write(2, MESSAGE);
    if IS_JSON.load(Ordering::Relaxed) {
        write(1, JSON);
    }
    // SAFETY: nothing runs after it.
    unsafe { libc::_exit(Exit::Failed.code().into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_for_programs_is_that_of_every_failure() {
        let answer: serde_json::Value = serde_json::from_str(JSON).unwrap();
        assert_eq!(answer["code"], Exit::Failed.code());
        assert_eq!(answer["meaning"], Exit::Failed.meaning());
        assert_eq!(MESSAGE, format!("error: {}\n", answer["error"].as_str().unwrap()));
    }
}
