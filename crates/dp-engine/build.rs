//! Compiles the CUDA kernels to PTX; without the feature `cuda` it does nothing.

#[cfg(feature = "cuda")]
mod cuda {
    use cudaforge::{CudaToolkit, KernelBuilder};

    const KERNELS: &str = "src/ops/cuda/kernels";
    /// The release of nvcc. 13.1 writes PTX that the driver of 13.0 (580) refuses.
    const RELEASE: &str = "13.0";
    /// The oldest GPU (A100), whose PTX all newer ones run. cudaforge makes `compute_90a` of 90,
    /// which runs on an H100 and on nothing else.
    const CAPABILITY: &str = "80";

    /// The compiler must be the one that kernels are tested with.
    fn check_compiler() -> Result<(), String> {
        let expected = format!("expected nvcc {RELEASE}; docs/cuda.md says how to get it");
        let toolkit = CudaToolkit::detect().map_err(|error| format!("feature `cuda`: {error}: {expected}"))?;
        let path = toolkit.nvcc_path.display();
        println!("cargo::rerun-if-changed={path}");
        for name in ["NVCC", "CUDA_HOME", "CUDA_PATH"] {
            println!("cargo::rerun-if-env-changed={name}");
        }
        match toolkit.version.as_deref() {
            Some(RELEASE) => Ok(()),
            found => Err(format!("{path}: release {}: {expected}", found.unwrap_or("unknown"))),
        }
    }

    /// Checks what candle's kernels are compiled for as well, which have no other setting.
    fn check_capability() -> Result<(), String> {
        println!("cargo::rerun-if-env-changed=CUDA_COMPUTE_CAP");
        let found = std::env::var("CUDA_COMPUTE_CAP").unwrap_or_else(|_| "(not set)".to_owned());
        if found == CAPABILITY {
            return Ok(());
        }
        Err(format!("CUDA_COMPUTE_CAP = {found}: expected {CAPABILITY}, whose code every GPU from the A100 on runs"))
    }

    pub(crate) fn compile() -> Result<(), String> {
        println!("cargo::rerun-if-changed={KERNELS}");
        check_compiler()?;
        check_capability()?;
        KernelBuilder::new()
            .source_files(["single", "double"].map(|name| format!("{KERNELS}/{name}.cu")))
            .watch([KERNELS])
            .args(["-std=c++17", "-O3"])
            // Cargo knows when to compile again; cudaforge does not look at the compiler.
            .no_incremental()
            .build_ptx()
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}

fn main() {
    #[cfg(feature = "cuda")]
    if let Err(error) = cuda::compile() {
        println!("cargo::error={}", error.replace('\n', " "));
    }
}
