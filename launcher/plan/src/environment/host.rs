//! What a hostfile says of one host, as variables of its ranks.

use rlaunch_wire::environment as name;

use super::Variable;
use crate::details::HostDetails;

/// Over what all hosts get, but not over `exported`, the names given by `-x`.
///
/// - `gpus=` is CUDA_VISIBLE_DEVICES, `gpus=none` an empty one.
/// - `nics=` restricts rlaunch's, NCCL's and Gloo's sockets to these interfaces; RDMA devices
///   (`mlx5_0`: no interface has an underscore) are NCCL's.
/// - `[host.env]` comes before both.
pub fn host_variables(details: &HostDetails, exported: &[Vec<u8>]) -> Vec<Variable> {
    let mut variables: Vec<Variable> = Vec::new();
    let mut put = |name: &str, value: String| {
        let (name, value) = (name.as_bytes().to_vec(), value.into_bytes());
        let is_known = variables.iter().any(|(known, _)| *known == name);
        if !is_known && !exported.contains(&name) {
            variables.push((name, value));
        }
    };
    for (name, value) in &details.variables {
        put(name, value.clone());
    }
    if let Some(gpus) = &details.gpus {
        put("CUDA_VISIBLE_DEVICES", gpus.join(","));
    }
    let (devices, interfaces): (Vec<&str>, Vec<&str>) = details
        .nics
        .iter()
        .map(String::as_str)
        .partition(|nic| is_rdma_device(nic));
    if !interfaces.is_empty() {
        let list = interfaces.join(",");
        put(name::RLAUNCH_SOCKET_IFNAME, format!("={list}"));
        put(name::NCCL_SOCKET_IFNAME, format!("={list}"));
        put(name::GLOO_SOCKET_IFNAME, list);
    }
    if !devices.is_empty() {
        put("NCCL_IB_HCA", format!("={}", devices.join(",")));
    }
    variables
}

/// Whether a word of `nics=` names an RDMA device and no interface.
pub fn is_rdma_device(nic: &str) -> bool {
    nic.contains('_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(details: &HostDetails, exported: &[&str]) -> Vec<String> {
        let exported: Vec<Vec<u8>> = exported.iter().map(|name| (*name).into()).collect();
        let variables = host_variables(details, &exported).into_iter();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        variables
            .map(|(name, value)| format!("{}={}", text(name), text(value)))
            .collect()
    }

    #[test]
    fn details_become_variables_unless_the_user_exports_them() {
        let details = HostDetails {
            gpus: Some(vec!["0".into(), "3".into()]),
            nics: vec!["ib0".into(), "mlx5_1".into(), "eth1".into()],
            variables: vec![("A".into(), "1".into())],
            ..HostDetails::default()
        };
        let expected = [
            "A=1",
            "CUDA_VISIBLE_DEVICES=0,3",
            "RLAUNCH_SOCKET_IFNAME==ib0,eth1",
            "NCCL_SOCKET_IFNAME==ib0,eth1",
            "GLOO_SOCKET_IFNAME=ib0,eth1",
            "NCCL_IB_HCA==mlx5_1",
        ];
        assert_eq!(shown(&details, &[]), expected);
        let own = ["A", "NCCL_SOCKET_IFNAME", "CUDA_VISIBLE_DEVICES"];
        let expected = [expected[2], expected[4], expected[5]];
        assert_eq!(shown(&details, &own), expected);
    }

    #[test]
    fn what_is_written_for_the_host_comes_before_what_follows_from_its_devices() {
        let details = HostDetails {
            gpus: Some(Vec::new()),
            variables: vec![("CUDA_VISIBLE_DEVICES".into(), "2".into())],
            ..HostDetails::default()
        };
        assert_eq!(shown(&details, &[]), ["CUDA_VISIBLE_DEVICES=2"]);
        let none = HostDetails {
            gpus: Some(Vec::new()),
            ..HostDetails::default()
        };
        assert_eq!(shown(&none, &[]), ["CUDA_VISIBLE_DEVICES="]);
        assert!(shown(&HostDetails::default(), &[]).is_empty());
    }
}
