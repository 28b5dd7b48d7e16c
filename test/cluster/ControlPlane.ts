import { type ChildProcess, execFile, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { createWriteStream } from "node:fs"
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Data, Duration, Effect, Schedule, type Scope } from "effect"
import { takeNetwork } from "./takeNetwork.ts"

const bin = join(import.meta.dirname, "../../tools/bin")

/** A program of the control plane did not start or a call of `kubectl` failed. */
export class ControlPlaneError extends Data.TaggedError("ControlPlaneError")<{ readonly message: string }> {}

/** Further flags of the programs. */
export type ProgramFlags = Partial<Readonly<Record<Program, ReadonlyArray<string>>>>

type Program = "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler"

/** A real Kubernetes control plane on loopback, without containers. Any client can register a node. */
export interface ControlPlane {
  /** An administrator's kubeconfig. */
  readonly kubeconfig: string
  /** Of the API server, `https://127.130.0.1:6443`. */
  readonly address: string
  /** The first two numbers of loopback addresses that are this control plane's own, such as `127.130`. */
  readonly network: string
  readonly directory: string
  /** Kills a program at once, as a machine that fails does. */
  readonly kill: (program: Program) => Effect.Effect<void>
  /** Starts a killed program again with its old data. */
  readonly start: (program: Program) => Effect.Effect<void>
  /** The output of `kubectl` or `helm`, built with it. Fails with the program's standard error. */
  readonly command: (
    name: "kubectl" | "helm",
    args: ReadonlyArray<string>,
    options?: { readonly input?: string; readonly kubeconfig?: string }
  ) => Effect.Effect<string, ControlPlaneError>
  /** A certificate and key for a kubelet's endpoint. */
  readonly tls: { readonly cert: string; readonly key: string }
  /** Writes a kubeconfig for a bearer token, such as one of a ServiceAccount; its path. */
  readonly kubeconfigFor: (name: string, token: string) => Effect.Effect<string>
}

const kubeconfigText = (options: { readonly address: string; readonly certificate: string; readonly token: string }) => `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "${options.address}", certificate-authority: ${options.certificate}}}]
users: [{name: test, user: {token: ${options.token}}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
`

const run = (file: string, args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}, input = "") =>
  Effect.callback<string, ControlPlaneError>((resume) => {
    const child = execFile(
      file,
      [...args],
      { env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env }, maxBuffer: 64 * 2 ** 20 },
      (error, stdout, stderr) =>
        resume(
          error === null
            ? Effect.succeed(stdout)
            : Effect.fail(new ControlPlaneError({ message: `${file} ${args.join(" ")}: ${stderr.trim() || error.message}` }))
        )
    )
    // A program that ends without reading says why itself.
    child.stdin?.on("error", () => undefined)
    child.stdin?.end(input)
  })

const ended = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

const waitForEnd = (child: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (ended(child)) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
  })

/** Starts the control plane in a new folder, with additional flags for its programs. It ends with the scope. RBAC is on. */
export const startControlPlane = Effect.fnUntraced(function* (
  directory: string,
  flags: ProgramFlags = {}
): Effect.fn.Return<ControlPlane, ControlPlaneError, Scope.Scope> {
  yield* Effect.promise(() => mkdir(directory, { recursive: true }))
  const path = (name: string) => join(directory, name)
  const network = yield* takeNetwork
  const host = `${network}.0.1`
  const address = `https://${host}:6443`
  const token = randomBytes(16).toString("hex")
  const kubeconfig = path("kubeconfig")
  yield* run("openssl", ["genrsa", "-out", path("sa.key"), "2048"])
  yield* run("openssl", ["rsa", "-in", path("sa.key"), "-pubout", "-out", path("sa.pub")])
  const write = (name: string, text: string) =>
    Effect.promise(async () => {
      await writeFile(path(name), text, { mode: 0o600 })
      return path(name)
    })
  yield* write("tokens.csv", `${token},admin,admin,system:masters\n`)
  yield* Effect.promise(() => chmod(path("sa.key"), 0o600))
  const subject = ["-subj", "/CN=node", "-addext", "subjectAltName=IP:127.0.0.1"]
  yield* run("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject, "-keyout", path("node.key"), "-out", path("node.crt")])
  const text = (name: string) => Effect.promise(() => readFile(path(name), "utf8"))
  const tls = { cert: yield* text("node.crt"), key: yield* text("node.key") }
  const certificate = path("certs/apiserver.crt")
  yield* write("kubeconfig", kubeconfigText({ address, certificate, token }))

  const programs: Record<Program, ReadonlyArray<string>> = {
    etcd: [
      `--data-dir=${path("etcd")}`,
      "--unsafe-no-fsync",
      `--listen-client-urls=http://${host}:2379`,
      `--advertise-client-urls=http://${host}:2379`,
      `--listen-peer-urls=http://${host}:2380`
    ],
    "kube-apiserver": [
      `--etcd-servers=http://${host}:2379`,
      "--secure-port=6443",
      `--bind-address=${host}`,
      `--advertise-address=${host}`,
      "--endpoint-reconciler-type=none",
      `--cert-dir=${path("certs")}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${path("sa.pub")}`,
      `--service-account-signing-key-file=${path("sa.key")}`,
      "--service-cluster-ip-range=10.0.0.0/24",
      "--authorization-mode=RBAC",
      // The names of nodes that run here are no names of hosts.
      "--kubelet-preferred-address-types=InternalIP",
      `--token-auth-file=${path("tokens.csv")}`,
      // Without it a pod needs no account; the products' own pods name theirs.
      "--disable-admission-plugins=ServiceAccount"
    ],
    "kube-controller-manager": [
      `--kubeconfig=${kubeconfig}`,
      `--service-account-private-key-file=${path("sa.key")}`,
      "--use-service-account-credentials=true",
      "--leader-elect=false",
      // A node that is lost is seen to be soon.
      "--node-monitor-period=1s",
      "--node-monitor-grace-period=15s",
      // A HorizontalPodAutoscaler reads its metric often.
      "--horizontal-pod-autoscaler-sync-period=3s",
      "--bind-address=127.0.0.1",
      "--secure-port=0"
    ],
    "kube-scheduler": [`--kubeconfig=${kubeconfig}`, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0"]
  }
  const running = new Map<Program, ChildProcess>()
  const start = (program: Program) =>
    Effect.sync(() => {
      const log = createWriteStream(path(`${program}.log`), { flags: "a" })
      const child = spawn(join(bin, program), [...programs[program], ...(flags[program] ?? [])], { cwd: directory, stdio: ["ignore", "pipe", "pipe"] })
      child.stdout.pipe(log, { end: false })
      child.stderr.pipe(log, { end: false })
      child.once("exit", () => log.end())
      running.set(program, child)
    })
  const kill = (program: Program) =>
    Effect.suspend(() => {
      const child = running.get(program)
      if (child === undefined || ended(child)) return Effect.void
      child.kill("SIGKILL")
      return waitForEnd(child)
    })
  const order: ReadonlyArray<Program> = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
  yield* Effect.addFinalizer(() => Effect.forEach(order.toReversed(), kill, { discard: true }))

  const command: ControlPlane["command"] = (name, args, { input = "", kubeconfig: other = kubeconfig } = {}) =>
    run(join(bin, name), args, { KUBECONFIG: other }, input)
  yield* start("etcd")
  yield* start("kube-apiserver")
  yield* command("kubectl", ["get", "--raw", "/readyz"]).pipe(
    Effect.retry(Schedule.spaced("200 millis")),
    Effect.timeoutOrElse({
      duration: Duration.minutes(5),
      orElse: () => Effect.fail(new ControlPlaneError({ message: `The API server is not ready after five minutes; its log is in ${directory}.` }))
    })
  )
  yield* start("kube-controller-manager")
  yield* start("kube-scheduler")
  return {
    kubeconfig,
    address,
    network,
    directory,
    tls,
    kill,
    start,
    command,
    kubeconfigFor: (name, bearer) => write(`${name}.kubeconfig`, kubeconfigText({ address, certificate, token: bearer }))
  }
})
