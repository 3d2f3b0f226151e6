//! Devices by name, as a command line has them.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;
use dp_engine::{cuda_device, cuda_device_in_tf32};

use crate::error::{Result, TrainError};
use crate::ranks::local_rank;

/// Where the arithmetic of a run is done, by name: `cpu`, `cuda:N` or `cuda-tf32:N`.
///
/// Without a number, `cuda` and `cuda-tf32` are the device whose number is this process's
/// [`local_rank`]: the first, or one for each process of a launcher.
///
/// ```
/// use dp_train::DeviceName;
///
/// assert_eq!("cuda:3".parse::<DeviceName>()?, DeviceName::Cuda(3));
/// assert!(DeviceName::Cpu.open()?.is_cpu());
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeviceName {
    /// The processor.
    #[default]
    Cpu,
    /// The CUDA device with this number.
    Cuda(usize),
    /// The same, with passes in TF32 ([`cuda_device_in_tf32`]).
    CudaInTf32(usize),
}

impl DeviceName {
    /// The device. A CUDA device is opened anew by every call, and stays open until the process
    /// ends.
    ///
    /// # Errors
    /// As [`cuda_device`].
    pub fn open(self) -> Result<Device> {
        match self {
            Self::Cpu => Ok(Device::Cpu),
            Self::Cuda(number) => Ok(cuda_device(number)?),
            Self::CudaInTf32(number) => Ok(cuda_device_in_tf32(number)?),
        }
    }
}

impl FromStr for DeviceName {
    type Err = TrainError;

    fn from_str(name: &str) -> Result<Self> {
        let (kind, number) = match name.split_once(':') {
            Some((kind, number)) => (kind, number.parse()),
            // Several processes on one machine have one card each.
            None => (name, Ok(local_rank())),
        };
        match (kind, number) {
            ("cpu", _) if name == kind => Ok(Self::Cpu),
            ("cuda", Ok(number)) => Ok(Self::Cuda(number)),
            ("cuda-tf32", Ok(number)) => Ok(Self::CudaInTf32(number)),
            _ => Err(TrainError::invalid("device", name, "cpu, cuda, cuda:N, cuda-tf32 or cuda-tf32:N")),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::CudaInTf32(number) => write!(f, "cuda-tf32:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        let parsed = |name: &str| name.parse::<DeviceName>().map_err(|error| error.to_string());
        assert_eq!(parsed("cpu"), Ok(DeviceName::Cpu));
        assert_eq!(parsed("cuda"), Ok(DeviceName::Cuda(0)));
        assert_eq!(parsed("cuda:3"), Ok(DeviceName::Cuda(3)));
        assert_eq!(DeviceName::Cuda(3).to_string(), "cuda:3");
        assert_eq!(parsed("cuda-tf32"), Ok(DeviceName::CudaInTf32(0)));
        assert_eq!(parsed(&DeviceName::CudaInTf32(3).to_string()), Ok(DeviceName::CudaInTf32(3)));
        for wrong in ["gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "cuda-tf32:", ""] {
            let expected = format!("device = {wrong}: expected cpu, cuda, cuda:N, cuda-tf32 or cuda-tf32:N");
            assert_eq!(parsed(wrong), Err(expected));
        }
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_build_without_cuda_names_the_feature() {
        let error = DeviceName::Cuda(1).open().unwrap_err().to_string();
        insta::assert_snapshot!(error, @"device = cuda:1: expected a build with the feature `cuda`; this one has the CPU alone");
    }
}
