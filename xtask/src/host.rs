//! What a study ran on, and which code.

/// Processor, cores, system.
pub(crate) fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let processor = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{processor}, {cores} cores, {}", std::env::consts::OS)
}

/// What tells this program's code from other code, built in: the revision of the checkout that it
/// was built from, if no source differed from it; else `REVISION-dirty-DIGEST`, or `unknown-DIGEST`
/// outside git, with the first digits of a sha256 of all sources.
pub(crate) fn code_revision() -> String {
    env!("XTASK_CODE_REVISION").to_owned()
}
