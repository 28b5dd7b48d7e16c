import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { NodePlane } from "./NodePlane.ts"
import { dnsAddress, type NodePlace, podNetwork } from "./places.ts"
import { networkPlugins } from "./requirements.ts"

/** The image of the first process of each pod. */
export const pauseImage = "localhost/seatrial-pause:1"

export const socketOf = ({ folder }: NodePlace): string => join(folder, "run/containerd.sock")

const containerd = (place: NodePlace) => `version = 3
root = "${join(place.folder, "containerd")}"
state = "${join(place.folder, "run/containerd")}"
[grpc]
  address = "${socketOf(place)}"
[plugins.'io.containerd.internal.v1.opt']
  path = "${join(place.folder, "opt")}"
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "${pauseImage}"
[plugins.'io.containerd.cri.v1.runtime']
  # Root may lack CAP_SYS_RESOURCE, which lowering a score needs.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["${networkPlugins}"]
  conf_dir = "${join(place.folder, "cni")}"
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = "runc"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false
`

/** All traffic of a pod passes its node's network namespace, where its network policies are enforced. */
const network = ({ folder, pods }: NodePlace) => {
  const ipam = { type: "host-local", dataDir: join(folder, "addresses"), ranges: [[{ subnet: pods }]], routes: [{ dst: "0.0.0.0/0" }] }
  return { cniVersion: "1.0.0", name: "seatrial", plugins: [{ type: "ptp", ipMasq: false, ipam }] }
}

const kubelet = (place: NodePlace, plane: NodePlane) => ({
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  failCgroupV1: false,
  cgroupDriver: "cgroupfs",
  cgroupRoot: `/${place.namespace}`,
  containerRuntimeEndpoint: `unix://${socketOf(place)}`,
  address: place.address,
  healthzBindAddress: place.address,
  authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: plane.certificate } },
  authorization: { mode: "Webhook" },
  clusterDNS: [dnsAddress],
  clusterDomain: "cluster.local",
  resolvConf: join(place.folder, "resolv.conf"),
  failSwapOn: false,
  // Root may lack CAP_SYS_RESOURCE.
  oomScoreAdj: 0,
  podLogsDir: join(place.folder, "pod-logs"),
  volumePluginDir: join(place.folder, "volume-plugins"),
  nodeStatusUpdateFrequency: "5s",
  syncFrequency: "10s",
  imageGCHighThresholdPercent: 100,
  evictionHard: { "memory.available": "200Mi", "nodefs.available": "1%", "imagefs.available": "1%" }
})

const kubeProxy = ({ address, name }: NodePlace, plane: NodePlane) => ({
  apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
  kind: "KubeProxyConfiguration",
  mode: "nftables",
  clusterCIDR: podNetwork,
  clientConnection: { kubeconfig: plane.kubeconfigOf("system:kube-proxy") },
  hostnameOverride: name,
  healthzBindAddress: `${address}:10256`,
  metricsBindAddress: "127.0.0.1:10249",
  // Only the machine's first network namespace can change the limits of connection tracking.
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" }
})

/** Writes the files that the programs of a node read, and returns their paths. */
export const writeConfiguration = (place: NodePlace, plane: NodePlane) => {
  const write = (name: string, text: string) => {
    const path = join(place.folder, name)
    writeFileSync(path, text)
    return path
  }
  write("cni/10-seatrial.conflist", JSON.stringify(network(place)))
  // Names outside of the cluster are not resolved.
  write("resolv.conf", "nameserver 127.0.0.1\n")
  return {
    containerd: write("containerd.toml", containerd(place)),
    kubelet: write("kubelet.json", JSON.stringify(kubelet(place, plane))),
    kubeProxy: write("kube-proxy.json", JSON.stringify(kubeProxy(place, plane)))
  }
}
