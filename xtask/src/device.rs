//! Where the arithmetic of a training command is done.

use std::num::NonZeroUsize;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use dp_train::{Device, DeviceName, Execution, NoiseSource};

/// Options of every command that trains.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct DeviceArgs {
    /// Where the arithmetic is done: cpu, cuda or cuda:N for the CUDA device with that number,
    /// cuda-tf32 or cuda-tf32:N for its passes in TF32; without a number the first, or one for each
    /// process of a launcher. CUDA needs a build with the feature `cuda` (docs/cuda.md).
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    device: DeviceName,
    /// Where noise is made in a run on a CUDA device. Privacy is the same.
    #[arg(long, value_enum, default_value_t = NoisePlace::Device)]
    noise: NoisePlace,
}

/// Where noise is made.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum NoisePlace {
    /// On the device.
    #[default]
    Device,
    /// On the host, by the code that makes it for the CPU.
    Host,
}

/// The device of this name.
///
/// # Errors
/// If this program has no CUDA, or no such device answers.
pub(crate) fn open(name: DeviceName) -> anyhow::Result<Device> {
    ensure!(
        name == DeviceName::Cpu || cfg!(feature = "cuda"),
        "--device {name}: this program was built without the feature `cuda`: \
         cargo run --release -p xtask --features cuda -- …"
    );
    name.open().with_context(|| format!("--device {name}: it cannot be used"))
}

impl DeviceArgs {
    /// Threads where none were asked for: all cores, or 1 on a CUDA device.
    pub(crate) fn default_threads(&self) -> NonZeroUsize {
        match self.device {
            DeviceName::Cpu => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            DeviceName::Cuda(_) | DeviceName::CudaInTf32(_) => NonZeroUsize::MIN,
        }
    }

    /// These options as the command line has them.
    pub(crate) fn arguments(&self) -> [String; 4] {
        let noise = match self.noise {
            NoisePlace::Device => "device",
            NoisePlace::Host => "host",
        };
        ["--device".into(), self.device.to_string(), "--noise".into(), noise.into()]
    }

    /// The execution on this device, on one thread.
    ///
    /// # Errors
    /// If this program has no CUDA, or no such device answers.
    pub(crate) fn execution(&self) -> anyhow::Result<Execution> {
        let device = open(self.device)?;
        let noise = match self.noise {
            NoisePlace::Device => NoiseSource::Device,
            NoisePlace::Host => NoiseSource::Host,
        };
        Ok(Execution { device, noise, ..Execution::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_they_are_written() {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            device: DeviceArgs,
        }
        for noise in ["device", "host"] {
            let arguments = ["--device", "cuda:2", "--noise", noise];
            let program = <Program as clap::Parser>::parse_from(["program"].into_iter().chain(arguments));
            assert_eq!(program.device.arguments(), arguments);
        }
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_build_without_cuda_says_how_to_get_one() {
        let args = DeviceArgs { device: DeviceName::Cuda(1), noise: NoisePlace::Device };
        let error = args.execution().unwrap_err().to_string();
        insta::assert_snapshot!(error, @"--device cuda:1: this program was built without the feature `cuda`: cargo run --release -p xtask --features cuda -- …");
    }
}
