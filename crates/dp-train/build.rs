//! Compiles the CUDA kernels to PTX; without the feature `cuda` it does nothing.

#[cfg(feature = "cuda")]
fn main() -> Result<(), cudaforge::Error> {
    const KERNELS: &str = "src/ops/cuda/kernels";
    println!("cargo::rerun-if-changed={KERNELS}");
    cudaforge::KernelBuilder::new()
        .source_files(["single", "double"].map(|name| format!("{KERNELS}/{name}.cu")))
        .watch([KERNELS])
        .args(["-std=c++17", "-O3"])
        .build_ptx()?;
    Ok(())
}

#[cfg(not(feature = "cuda"))]
fn main() {}
