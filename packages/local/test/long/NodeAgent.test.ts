import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { KubeClient, Node, Secret } from "@seatrial/kube"
import { Effect, Layer, Option, Schema, type Scope, Stream } from "effect"
import { NodeAgent } from "../../src/node/NodeAgent.ts"
import { BoundPod } from "../../src/node/PodObject.ts"
import { startOf } from "../../src/process/ProcessIdentity.ts"
import { create, idle, image, isReady, main, node, phase, podIP, serve, until, untilAbsent, untilGone } from "../node/pods.ts"
import { layerCluster } from "../node/realCluster.ts"

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-node-test-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)
const agent = (directory: string, network: string) =>
  Layer.build(
    NodeAgent.layer({
      directory,
      network,
      images: { "ghcr.io/seatrial/test": { path: [] } },
      nodes: [{ name: "gpu-0", gpus: 2, product: "NVIDIA-H100-80GB-HBM3", memoryMiB: 81_559 }]
    })
  )

let networks = 100
/** Runs a new agent on an empty cluster. */
const onNode = <A, E>(promise: string, body: (directory: string, network: string) => Effect.Effect<A, E, KubeClient | Scope.Scope>) =>
  it.live(promise, () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const network = `127.${networks++}`
      return yield* body(directory, network)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(layerCluster)))
  )

const pidOf = (directory: string, pod: BoundPod) =>
  Effect.promise(async () => Number.parseInt(await readFile(join(directory, "pods", pod.metadata.uid ?? "", "main.pid"), "utf8"), 10))
const logAddressOf = (pod: BoundPod) =>
  Effect.gen(function* () {
    const kube = yield* KubeClient
    const stored = Option.getOrThrow(yield* kube.get(Node, "gpu-0"))
    const { Port } = Schema.decodeUnknownSync(
      Schema.Struct({ status: Schema.Struct({ daemonEndpoints: Schema.Struct({ kubeletEndpoint: Schema.Struct({ Port: Schema.Int }) }) }) })
    )(stored).status.daemonEndpoints.kubeletEndpoint
    return `http://127.0.0.1:${Port}/containerLogs/default/${pod.metadata.name}/main`
  })
const logOf = (pod: BoundPod) =>
  Effect.map(logAddressOf(pod), (address) => (path: string) => Effect.promise(() => fetch(`${address}${path}`).then((answer) => answer.text())))

describe("NodeAgent", () => {
  onNode("a node announces its GPUs and stays alive by a lease", (directory, network) =>
    Effect.gen(function* () {
      yield* agent(directory, network)
      const kube = yield* KubeClient
      const stored = Option.getOrThrow(yield* kube.get(Node, "gpu-0"))
      assert.strictEqual(stored.status?.allocatable?.["nvidia.com/gpu"], "2")
      assert.strictEqual(stored.metadata.labels?.["nvidia.com/gpu.memory"], "81559")
      assert.strictEqual(stored.metadata.labels?.["seatrial.dev/simulated"], "true")
      assert.isTrue(stored.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"))
    })
  )

  onNode("a pod serves on its own address and is ready only once its probe passes", (directory, network) =>
    Effect.gen(function* () {
      yield* agent(directory, network)
      const probe = { httpGet: { path: "/", port: "http" }, periodSeconds: 0.05 }
      const container = node(serve, {
        env: [podIP],
        ports: [{ name: "http", containerPort: 8000 }],
        startupProbe: { ...probe, failureThreshold: 200 },
        readinessProbe: probe
      })
      yield* create("one", { containers: [container] })
      yield* create("two", { containers: [container] })
      const [one, two] = [yield* until("one", isReady), yield* until("two", isReady)]
      assert.notStrictEqual(one.status?.podIP, two.status?.podIP)
      assert.isTrue(one.status?.podIP?.startsWith(`${network}.`))
      assert.strictEqual(yield* Effect.promise(() => fetch(`http://${two.status?.podIP}:8000/`).then((answer) => answer.text())), "ok")
      assert.deepInclude(main(one), { started: true, ready: true, restartCount: 0 })
    })
  )

  onNode("a container sees what its pod gives it, and nothing of the agent's own environment", (directory, network) =>
    Effect.gen(function* () {
      const kube = yield* KubeClient
      yield* kube.create(Secret, { metadata: { name: "hub", namespace: "default" }, data: { token: Buffer.from("s3cret").toString("base64") } })
      process.env.SEATRIAL_TEST_LEAK = "leaked"
      yield* agent(directory, network)
      const script =
        "const fs=require('fs');fs.writeFileSync(process.argv[1]+'/out.json', JSON.stringify({argv:process.argv.slice(1),env:process.env,token:fs.readFileSync(process.env.TOKEN_FILE,'utf8')}))"
      yield* create("env", {
        restartPolicy: "Never",
        containers: [
          node(script, {
            args: ["/models", "--host=$(POD_IP)", "--name=$(NAME)", "$(NOBODY)"],
            env: [
              podIP,
              { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
              { name: "TOKEN", valueFrom: { secretKeyRef: { name: "hub", key: "token" } } },
              { name: "TOKEN_FILE", value: "/secrets/token" }
            ],
            volumeMounts: [
              { name: "weights", mountPath: "/models" },
              { name: "hub", mountPath: "/secrets" }
            ]
          })
        ],
        volumes: [
          { name: "weights", persistentVolumeClaim: { claimName: "cache" } },
          { name: "hub", secret: { secretName: "hub" } }
        ]
      })
      const pod = yield* until("env", phase("Succeeded"))
      const volume = join(directory, "volumes", "default-cache")
      const seen = JSON.parse(yield* Effect.promise(() => readFile(join(volume, "out.json"), "utf8")))
      assert.deepStrictEqual(seen.argv, [volume, `--host=${pod.status?.podIP}`, "--name=env", "$(NOBODY)"])
      assert.deepStrictEqual(Object.keys(seen.env).sort(), ["HOME", "LANG", "NAME", "PATH", "POD_IP", "SEATRIAL_PARENT_PIPE", "TMPDIR", "TOKEN", "TOKEN_FILE"])
      assert.deepStrictEqual([seen.env.TOKEN, seen.token], ["s3cret", "s3cret"])
      const file = yield* Effect.promise(() => stat(seen.env.TOKEN_FILE))
      assert.strictEqual(file.mode & 0o777, 0o600)
      yield* kube.remove(BoundPod, "env", "default")
      yield* untilGone("env")
      yield* untilAbsent(seen.env.TOKEN_FILE)
      assert.isTrue((yield* Effect.promise(() => stat(volume))).isDirectory())
    })
  )

  onNode("a failing container is started again with back-off and shows how it ended", (directory, network) =>
    Effect.gen(function* () {
      yield* agent(directory, network)
      yield* create("crash", { containers: [node("console.error('out of luck'); process.exit(3)", { terminationMessagePolicy: "FallbackToLogsOnError" })] })
      const waiting = yield* until("crash", (pod) => main(pod)?.state?.waiting?.reason === "CrashLoopBackOff")
      assert.deepInclude(main(waiting)?.lastState?.terminated, { exitCode: 3, reason: "Error", message: "out of luck\n" })
      const again = yield* until("crash", (pod) => main(pod)?.restartCount === 1)
      assert.strictEqual(again.status?.phase, "Running")
      assert.isFalse(isReady(again))
    })
  )

  onNode("restart policy Never ends a pod as its containers end", (directory, network) =>
    Effect.gen(function* () {
      yield* agent(directory, network)
      yield* create("bad", { restartPolicy: "Never", containers: [node("process.exit(7)")] })
      yield* create("good", { restartPolicy: "Never", containers: [node("")] })
      yield* create("absent", { restartPolicy: "Never", containers: [{ name: "main", image, command: ["no-such-program"] }] })
      assert.deepInclude(main(yield* until("bad", phase("Failed")))?.state?.terminated, { exitCode: 7, reason: "Error" })
      assert.deepInclude(main(yield* until("good", phase("Succeeded")))?.state?.terminated, { exitCode: 0, reason: "Completed" })
      assert.deepInclude(main(yield* until("absent", phase("Failed")))?.state?.terminated, { exitCode: 128, reason: "StartError" })
    })
  )

  onNode("an image that this node does not have, and a secret that is missing, are named as Kubernetes names them", (directory, network) =>
    Effect.gen(function* () {
      yield* agent(directory, network)
      yield* create("foreign", { containers: [{ ...node(idle), image: "docker.io/vllm/vllm-openai:v0.11" }] })
      yield* create("config", { containers: [node(idle, { env: [{ name: "TOKEN", valueFrom: { secretKeyRef: { name: "none", key: "token" } } }] })] })
      const foreign = yield* until("foreign", (pod) => main(pod)?.state?.waiting?.reason === "ErrImagePull")
      assert.include(main(foreign)?.state?.waiting?.message, "docker.io/vllm/vllm-openai:v0.11")
      assert.strictEqual(foreign.status?.phase, "Pending")
      const config = yield* until("config", (pod) => main(pod)?.state?.waiting?.reason === "CreateContainerConfigError")
      assert.include(main(config)?.state?.waiting?.message, 'secret "none" not found')
    })
  )

  onNode(
    "a folder that is missing from a read-only volume keeps its container from being created, as on a real node; other folders are created",
    (directory, network) =>
      Effect.gen(function* () {
        yield* agent(directory, network)
        const mounting = (readOnly: boolean, subPath: string) => ({
          containers: [node(idle, { volumeMounts: [{ name: "store", mountPath: "/store", subPath }] })],
          volumes: [{ name: "store", persistentVolumeClaim: { claimName: "store", readOnly } }]
        })
        yield* create("reader", mounting(true, "a/b"))
        const reader = yield* until("reader", (pod) => main(pod)?.state?.waiting?.reason === "CreateContainerConfigError")
        assert.strictEqual(main(reader)?.state?.waiting?.message, 'failed to create subPath directory for volumeMount "store" of container "main"')
        yield* create("writer", mounting(false, "a/b"))
        yield* until("writer", isReady)
        yield* until("reader", isReady)
      })
  )

  onNode("a container whose liveness probe fails is killed and started again", (directory, network) =>
    Effect.gen(function* () {
      yield* agent(directory, network)
      const livenessProbe = { exec: { command: ["test", "!", "-e", "/scratch/sick"] }, periodSeconds: 0.05, failureThreshold: 1 }
      yield* create("sick", {
        containers: [
          node(`require('fs').writeFileSync(process.argv[1], ''); ${idle}`, {
            args: ["/scratch/sick"],
            livenessProbe,
            volumeMounts: [{ name: "scratch", mountPath: "/scratch" }]
          })
        ],
        volumes: [{ name: "scratch", emptyDir: {} }]
      })
      const pod = yield* until("sick", (seen) => main(seen)?.lastState?.terminated !== undefined)
      assert.deepInclude(main(pod)?.lastState?.terminated, { exitCode: 143, signal: 15 })
    })
  )

  onNode("deletion gives the process its grace, then takes it and all that it started", (directory, network) =>
    Effect.gen(function* () {
      yield* agent(directory, network)
      const kube = yield* KubeClient
      const stubborn = `process.on('SIGTERM', () => console.log('no')); const c = require('child_process').spawn('sleep', ['1000']); console.log(c.pid); ${idle}`
      yield* create("stubborn", { terminationGracePeriodSeconds: 1, containers: [node(stubborn)] })
      const pod = yield* until("stubborn", phase("Running"))
      const pid = yield* pidOf(directory, pod)
      const log = yield* logOf(pod)
      const first = yield* Stream.fromEffectRepeat(log("?tailLines=1")).pipe(
        Stream.filter((text) => /^\d+\n$/.test(text)),
        Stream.runHead
      )
      const grandchild = Number.parseInt(Option.getOrThrow(first), 10)
      assert.isDefined(yield* Effect.promise(() => startOf(grandchild)))
      yield* kube.remove(BoundPod, "stubborn", "default")
      yield* untilGone("stubborn")
      assert.isUndefined(yield* Effect.promise(() => startOf(pid)))
      assert.isUndefined(yield* Effect.promise(() => startOf(grandchild)))
      yield* untilAbsent(join(directory, "pods", pod.metadata.uid ?? ""))
    })
  )

  onNode("after a restart of the agent its pods run again at the same address, and Jobs' pods fail as disrupted", (directory, network) =>
    Effect.gen(function* () {
      const readinessProbe = { httpGet: { port: 8000 }, periodSeconds: 0.05, failureThreshold: 1000 }
      const before = yield* Effect.scoped(
        Effect.gen(function* () {
          yield* agent(directory, network)
          yield* create("engine", { containers: [node(serve, { env: [podIP], readinessProbe })] })
          yield* create("download", { restartPolicy: "Never", containers: [node(idle)] })
          const pod = yield* until("engine", isReady)
          yield* until("download", phase("Running"))
          return { pod, pid: yield* pidOf(directory, pod) }
        })
      )
      assert.isUndefined(yield* Effect.promise(() => startOf(before.pid)))
      yield* agent(directory, network)
      const after = yield* until("engine", (pod) => isReady(pod) && main(pod)?.restartCount === 1)
      assert.strictEqual(after.status?.podIP, before.pod.status?.podIP)
      const download = yield* until("download", phase("Failed"))
      assert.isTrue(download.status?.conditions?.some(({ type, status }) => type === "DisruptionTarget" && status === "True"))
    })
  )

  onNode("the log endpoint gives the last lines, and follows a log to its end", (directory, network) =>
    Effect.gen(function* () {
      yield* agent(directory, network)
      const script = `console.log('one'); console.log('two')
        const wait = setInterval(() => { if (require('fs').existsSync(process.argv[1])) { console.log('three'); clearInterval(wait) } }, 10)`
      yield* create("talk", {
        restartPolicy: "Never",
        containers: [node(script, { args: ["/work/go"], volumeMounts: [{ name: "work", mountPath: "/work" }] })],
        volumes: [{ name: "work", persistentVolumeClaim: { claimName: "talk" } }]
      })
      const pod = yield* until("talk", phase("Running"))
      const log = yield* logOf(pod)
      const address = yield* logAddressOf(pod)
      // The last line is written after a follower has read the earlier ones.
      const followed = yield* Effect.promise(async () => {
        let text = ""
        const { body } = await fetch(`${address}?follow=true`)
        for await (const bytes of body ?? []) {
          text += Buffer.from(bytes).toString("utf8")
          if (text === "one\ntwo\n") await writeFile(join(directory, "volumes", "default-talk", "go"), "")
        }
        return text
      })
      assert.strictEqual(followed, "one\ntwo\nthree\n")
      assert.strictEqual(yield* log("?tailLines=2"), "two\nthree\n")
      assert.include(yield* log("x"), "no log yet")
    })
  )

  onNode("init containers run before, one after the other", (directory, network) =>
    Effect.gen(function* () {
      yield* agent(directory, network)
      const shared = { volumeMounts: [{ name: "work", mountPath: "/work" }] }
      const append = (word: string) => ({ ...shared, args: ["/work/order", word] })
      const script = "require('fs').appendFileSync(process.argv[1], process.argv[2])"
      yield* create("order", {
        restartPolicy: "Never",
        initContainers: [
          { ...node(script, append("a")), name: "first" },
          { ...node(script, append("b")), name: "second" }
        ],
        containers: [node("console.log(require('fs').readFileSync(process.argv[1], 'utf8'))", { ...shared, args: ["/work/order"] })],
        volumes: [{ name: "work", emptyDir: {} }]
      })
      const pod = yield* until("order", phase("Succeeded"))
      assert.strictEqual(yield* (yield* logOf(pod))(""), "ab\n")
    })
  )
})
