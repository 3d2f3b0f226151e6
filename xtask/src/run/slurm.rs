//! A batch script that trains a study's parts as an array job under Slurm.

use run_records::shell;

use super::parts::Parts;

/// To be handed to `sbatch`.
pub(crate) fn script(parts: &Parts) -> String {
    let Parts { study, of, folder, .. } = parts;
    format!(
        r"#!/bin/bash
#SBATCH --job-name=reproduce-{study}
#SBATCH --array=1-{of}
#SBATCH --cpus-per-task={cores}
#SBATCH --requeue
# Each task trains one of {of} parts of the study and stores it in a file of its own.
#
# Assumed: all nodes share this file system; the program was built for their processors (on several types, results are equal up to
# rounding only); the data files are in place, for nothing is downloaded; `sbatch` passes DP_DATA_DIR on. Add what your cluster
# asks for: partition, account, time, memory.
#
# A task that was stopped goes on where it was when it is queued again. When all have ended:
#   {merge}
#   {report}
set -euo pipefail
cd {folder}
exec {task}
",
        cores = parts.cores(),
        merge = parts.merge(),
        report = parts.report(),
        folder = shell::path(folder),
        task = parts.task("$SLURM_ARRAY_TASK_ID", r#""$SLURM_CPUS_PER_TASK""#),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_of_a_study() {
        let script = script(&Parts::fixture("--slurm"));
        assert!(script.lines().all(|line| !line.starts_with("rm ")), "a line break in a path begins no command");
        insta::assert_snapshot!("slurm_script", script);
    }

    #[test]
    fn the_shell_reads_the_script() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("array.sh");
        std::fs::write(&path, script(&Parts::fixture("--slurm"))).unwrap();
        let Ok(output) = std::process::Command::new("bash").arg("-n").arg(&path).output() else {
            println!("skipped: no bash");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
