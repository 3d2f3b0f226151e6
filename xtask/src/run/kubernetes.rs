//! A manifest that trains a study's parts as an Indexed Job under Kubernetes.

use super::parts::Parts;

/// To be handed to `kubectl`, after `envsubst` has put image and claim in.
///
/// # Errors
/// If the folder's name is not UTF-8, which YAML must be.
pub(crate) fn manifest(parts: &Parts) -> anyhow::Result<String> {
    let Parts { study, of, folder, root, .. } = parts;
    let cores = parts.cores();
    // A JSON string is a YAML string.
    let (mounted, folder) = (serde_json::to_string(root)?, serde_json::to_string(folder)?);
    let data = match std::env::var("DP_DATA_DIR") {
        Ok(data) => format!(
            "\n          env:\n            - name: DP_DATA_DIR\n              value: {}",
            serde_json::to_string(&data)?
        ),
        Err(_) => String::new(),
    };
    Ok(format!(
        r#"# Each pod trains one of {of} parts of the study and stores it in a file of its own:
#   export IMAGE=… CLAIM=…
#   envsubst '$IMAGE $CLAIM' < this file | kubectl apply -f -
#
# Assumed: the claim is a file system that all pods can write to (ReadWriteMany), with program and data files under the
# mounted folder; the image has bash and what the program is linked with; all nodes have the type of processor that it was built for (on
# several types, results are equal up to rounding only); nothing is downloaded.
#
# A pod that was stopped is replaced, and the new one goes on where it was. When all have ended:
#   {merge}
#   {report}
apiVersion: batch/v1
kind: Job
metadata:
  name: reproduce-{study}
spec:
  completionMode: Indexed
  completions: {of}
  parallelism: {of}
  backoffLimitPerIndex: 10
  podFailurePolicy:
    rules:
      # Evicted: that is no failure.
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: part
          image: $IMAGE
          workingDir: {folder}
          command: ["/bin/bash", "-c"]
          args:
            - |
              set -euo pipefail
              exec {task}{data}
          resources:
            requests:
              cpu: {cores}
          volumeMounts:
            - name: work
              mountPath: {mounted}
      volumes:
        - name: work
          persistentVolumeClaim:
            claimName: $CLAIM
"#,
        merge = parts.merge(),
        report = parts.report(),
        task = parts.task("$((JOB_COMPLETION_INDEX + 1))", &cores.to_string()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_of_a_study() {
        let manifest = manifest(&Parts::fixture("--kubernetes")).unwrap();
        assert!(manifest.lines().all(|line| !line.trim_start().starts_with("rm ")));
        let without_data: Vec<&str> = manifest
            .lines()
            .filter(|line| !["env:", "DP_DATA_DIR", "value:"].iter().any(|word| line.contains(word)))
            .collect();
        insta::assert_snapshot!("kubernetes_manifest", without_data.join("\n"));
    }
}
