//! Elementary functions are `libm`'s: their errors are stated, and bits do not depend on the
//! platform's library.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use std::path::Path;

/// Methods of `f64` that call the platform's library, or whose precision is not specified.
const PLATFORM: [&str; 13] = [
    ".exp()",
    ".ln()",
    ".exp_m1()",
    ".ln_1p()",
    ".sin()",
    ".cos()",
    ".sin_cos()",
    ".tan()",
    ".atan2(",
    ".log2()",
    ".log10()",
    ".powf(",
    "from_polar(",
];

/// Lines of the library outside of tests, comments and the audit, which plans in doubles and judges
/// in others.
fn offences(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("audit") {
                offences(&path, found);
            }
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (i, line) in code.lines().enumerate() {
            let is_code = !line.trim_start().starts_with("//");
            if is_code && PLATFORM.iter().any(|method| line.contains(method)) {
                found.push(format!("{}:{}: {}", path.display(), i + 1, line.trim()));
            }
        }
    }
}

#[test]
fn no_bound_depends_on_the_platforms_library() {
    let mut found = Vec::new();
    offences(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.is_empty(), "use `libm`:\n{}", found.join("\n"));
}
