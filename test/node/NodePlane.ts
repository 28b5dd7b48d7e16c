import { randomBytes } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schedule, type Scope } from "effect"
import { apiServer, bin, bridge, hostAddress, nodes, serviceNetwork, state } from "./places.ts"
import { runNow, runTool, type ToolFailed, type ToolOptions } from "./runTool.ts"
import { type Part, startPart } from "./startPart.ts"

const folder = join(state, "plane")
const certificate = join(folder, "tls.crt")
const key = join(folder, "tls.key")

/** A real control plane at this machine's address on the nodes' bridge. */
export interface NodePlane {
  readonly kubeconfig: string
  /** Signs the API server, and the API server's calls of kubelets. */
  readonly certificate: string
  /** Writes a kubeconfig for a node or a program of nodes. */
  readonly kubeconfigOf: (user: string) => string
  readonly run: (name: "kubectl" | "helm", args: ReadonlyArray<string>, options?: ToolOptions) => Effect.Effect<string, ToolFailed>
}

/** Users and their groups. Nodes have only the rights that Kubernetes gives to nodes. */
const users: Readonly<Record<string, string>> = {
  admin: "system:masters",
  "system:kube-proxy": "",
  ...Object.fromEntries(nodes.map(({ name }) => [`system:node:${name}`, "system:nodes"]))
}

const createBridge = (): void => {
  runNow("ip", "link", "add", bridge, "type", "bridge")
  runNow("ip", "addr", "add", `${hostAddress}/24`, "dev", bridge)
  runNow("ip", "link", "set", bridge, "up")
}

/** One certificate that signs itself, for the API server and its calls of kubelets. */
const createCertificates = (): void => {
  const names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"].map((name) => `DNS:${name}`)
  const addresses = [hostAddress, serviceNetwork.replace(/0\/16$/u, "1"), "127.0.0.1"].map((address) => `IP:${address}`)
  const subject = ["-subj", "/O=system:masters/CN=kube-apiserver", "-addext", `subjectAltName=${[...names, ...addresses].join(",")}`]
  runNow("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject, "-keyout", key, "-out", certificate)
  runNow("openssl", "genrsa", "-out", join(folder, "sa.key"), "2048")
  runNow("openssl", "rsa", "-in", join(folder, "sa.key"), "-pubout", "-out", join(folder, "sa.pub"))
}

/** Gives each user a token, and returns the path of a user's kubeconfig. */
const createUsers = () => {
  const tokens = Object.entries(users).map(([user, group]) => ({ user, group, token: randomBytes(16).toString("hex") }))
  writeFileSync(join(folder, "tokens.csv"), tokens.map(({ group, token, user }) => `${token},${user},${user},"${group}"\n`).join(""))
  const paths = tokens.map(({ token, user }) => {
    const path = join(folder, `${user.replaceAll(":", "-")}.kubeconfig`)
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "test", cluster: { server: apiServer, "certificate-authority": certificate } }],
      users: [{ name: "test", user: { token } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
      "current-context": "test"
    }
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
    return [user, path] as const
  })
  const byUser = new Map(paths)
  return (user: string): string => {
    const path = byUser.get(user)
    if (path === undefined) throw new Error(`The control plane has no user ${user}.`)
    return path
  }
}

const etcdAddress = "http://127.0.0.1:23790"

const programs = (kubeconfig: string) => ({
  etcd: [
    `--data-dir=${join(folder, "etcd")}`,
    "--unsafe-no-fsync",
    `--listen-client-urls=${etcdAddress}`,
    `--advertise-client-urls=${etcdAddress}`,
    "--listen-peer-urls=http://127.0.0.1:23800"
  ],
  "kube-apiserver": [
    `--etcd-servers=${etcdAddress}`,
    "--secure-port=6443",
    `--bind-address=${hostAddress}`,
    `--advertise-address=${hostAddress}`,
    `--tls-cert-file=${certificate}`,
    `--tls-private-key-file=${key}`,
    `--token-auth-file=${join(folder, "tokens.csv")}`,
    `--kubelet-client-certificate=${certificate}`,
    `--kubelet-client-key=${key}`,
    "--kubelet-preferred-address-types=InternalIP",
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    `--service-account-key-file=${join(folder, "sa.pub")}`,
    `--service-account-signing-key-file=${join(folder, "sa.key")}`,
    `--service-cluster-ip-range=${serviceNetwork}`,
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction"
  ],
  "kube-controller-manager": [
    `--kubeconfig=${kubeconfig}`,
    `--service-account-private-key-file=${join(folder, "sa.key")}`,
    `--root-ca-file=${certificate}`,
    "--use-service-account-credentials=true",
    "--leader-elect=false",
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=20s",
    "--bind-address=127.0.0.1",
    "--secure-port=0"
  ],
  "kube-scheduler": [`--kubeconfig=${kubeconfig}`, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0"]
})

const untilReady = (run: NodePlane["run"], server: Part) =>
  run("kubectl", ["get", "--raw", "/readyz"]).pipe(
    Effect.retry(Schedule.spaced("200 millis")),
    Effect.timeoutOrElse({
      duration: "5 minutes",
      orElse: () => Effect.die(new Error(`The API server is not ready after five minutes: ${server.log()}`))
    })
  )

/** Starts etcd, API server, controller manager and scheduler. */
export const startNodePlane: Effect.Effect<NodePlane, ToolFailed, Scope.Scope> = Effect.gen(function* () {
  mkdirSync(folder, { recursive: true })
  createBridge()
  createCertificates()
  const kubeconfigOf = createUsers()
  const kubeconfig = kubeconfigOf("admin")
  const run: NodePlane["run"] = (name, args, { env, input } = {}) =>
    runTool(join(bin, name), args, { env: { KUBECONFIG: kubeconfig, ...env }, ...(input === undefined ? {} : { input }) })
  const flags = programs(kubeconfig)
  yield* startPart("etcd", [join(bin, "etcd"), ...flags.etcd])
  const server = yield* startPart("kube-apiserver", [join(bin, "kube-apiserver"), ...flags["kube-apiserver"]])
  yield* untilReady(run, server)
  yield* startPart("kube-controller-manager", [join(bin, "kube-controller-manager"), ...flags["kube-controller-manager"]])
  yield* startPart("kube-scheduler", [join(bin, "kube-scheduler"), ...flags["kube-scheduler"]])
  return { kubeconfig, certificate, kubeconfigOf, run }
})
