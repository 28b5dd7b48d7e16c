import { chmod, mkdir, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import type { Phase } from "@seatrial/domain"
import { KubeClient } from "@seatrial/kube"
import { NodeAgent, SampleHub } from "@seatrial/local"
import { HostClassResource } from "@seatrial/operator"
import { Context, Effect, Layer } from "effect"
import { codeOf, makeCaller } from "../Caller.ts"
import { ask, wholeOf } from "../chat.ts"
import { objectsOfRuns, openCluster, shortenBenchmark } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { keepAsking } from "../keepAsking.ts"
import { makeStateFolder, startSystem } from "../LocalSystem.ts"
import { serving } from "../Served.ts"
import { spoiltRepository } from "../spoiltRepository.ts"

const engineImage = "ghcr.io/seatrial/reference-engine"
const silent = { name: "silent", product: "Silent-1GiB" }

/** Adds a node and a host class whose engines start but never respond. The node has no room for downloads. */
const joinSilentNode = Effect.fnUntraced(function* (kube: KubeClient["Service"], folder: string) {
  const programs = join(folder, "programs")
  yield* Effect.promise(async () => {
    await mkdir(programs, { recursive: true })
    await writeFile(join(programs, "seatrial-reference-engine"), "#!/bin/sh\nexec sleep 3600\n")
    // Claims are shared by all nodes.
    await symlink(join(folder, "../volumes"), join(folder, "volumes"))
    // It checks nothing.
    await writeFile(join(programs, "seatrial"), "#!/bin/sh\nexit 0\n")
    for (const program of ["seatrial-reference-engine", "seatrial"]) await chmod(join(programs, program), 0o755)
  })
  const agent = NodeAgent.layer({
    directory: folder,
    nodes: [{ name: "silent-0", gpus: 1, product: silent.product, memoryMiB: 1_024, memory: "256Mi" }],
    images: { [engineImage]: { path: [programs] }, "ghcr.io/seatrial/seatrial": { path: [programs] } },
    network: "127.253"
  })
  yield* Layer.build(agent.pipe(Layer.provide(Layer.succeed(KubeClient, kube))))
  const hostClass = {
    apiVersion: "seatrial.dev/v1alpha1",
    kind: "HostClass",
    metadata: { name: silent.name },
    spec: {
      runtimes: [{ runtime: "reference", image: `${engineImage}:0.1.0` }],
      gpuPool: silent.product,
      gpuCount: 1,
      gpuMemoryBytes: 2 ** 30,
      // Less than the node has: the default would fit nowhere.
      memoryBytes: 2 ** 27,
      nodeSelector: { "nvidia.com/gpu.product": silent.product },
      pricePerGpuHour: "200000",
      benchmarkSeconds: 1,
      bootDeadlineSeconds: 5,
      simulated: true
    }
  }
  yield* kube.apply(HostClassResource, hostClass)
}, Effect.orDie)

interface Failing {
  readonly what: string
  readonly ref: string
  readonly serving: Readonly<Record<string, unknown>>
  readonly phase: Phase
  readonly detail: RegExp
}

const failing: ReadonlyArray<Failing> = [
  { what: "a download that is not the commit's", ref: "corrupted", serving: {}, phase: "materializing", detail: /^weights_mismatch: / },
  { what: "an engine that dies while it starts", ref: "misfit", serving: {}, phase: "booting", detail: /^tokenizer_unreadable: / },
  {
    what: "weights of another configuration",
    ref: "contradicting",
    serving: {},
    phase: "screening",
    detail: /^unsupported_format: The weights do not match config\.json/
  },
  { what: "an engine that never becomes ready", ref: "silent", serving: { host_class: silent.name }, phase: "booting", detail: /^boot_timeout: / },
  { what: "a repository that asks for its own Python", ref: "remote-code", serving: {}, phase: "screening", detail: /^remote_code_required: / },
  { what: "pickled weights", ref: "pickled", serving: {}, phase: "screening", detail: /^unsupported_format: / },
  { what: "a ref that is not there", ref: "nowhere", serving: {}, phase: "screening", detail: /^revision_not_found: / }
]

it.live(
  "a run that cannot succeed fails in its phase with an actionable reason, leaves nothing behind, and the serving model continues",
  () =>
    Effect.gen(function* () {
      const folder = yield* makeStateFolder
      const corrupted = spoiltRepository.tags.get("corrupted") ?? ""
      const hub = SampleHub.layer({
        port: 0,
        repositories: [spoiltRepository],
        // After the header, which screening reads.
        faults: ({ file, path }) => (file === "model.safetensors" && path.includes(corrupted) ? { kind: "corrupt", offset: 1_000_000 } : undefined)
      })
      const { address } = Context.get(yield* Layer.build(hub), SampleHub)
      const { state } = yield* startSystem(folder, { SEATRIAL_DURABLE: "false", HF_ENDPOINT: address })
      const caller = makeCaller(state.address, state.api_key)
      const kube = yield* openCluster(state.kubeconfig)
      yield* shortenBenchmark(kube)
      yield* joinSilentNode(kube, join(folder, "silent"))

      const served = yield* caller.deploy({ source: { kind: "model_hub", repo: "test/spoilt", ref: "good" }, serving })
      const { model, status } = yield* caller.finished(served.id)
      assert.strictEqual(status, "activated")
      const before = wholeOf(yield* ask(caller, model)).text

      const stop = yield* keepAsking(caller, model)
      const missing = yield* caller.deploy({ source: { kind: "model_hub", repo: "test/missing" } })
      const runs = yield* Effect.forEach(failing, (run) =>
        Effect.map(caller.deploy({ model_id: served.model_id, ref: run.ref, serving: run.serving }), ({ id }) => ({ ...run, id }))
      )
      const details = yield* Effect.forEach(
        [...runs, { id: missing.id, what: "a repository that is not there", phase: "screening", detail: /^repository_not_found: / }],
        ({ detail, id, phase, what }) =>
          Effect.map(caller.finished(id), (ended) => {
            const text = ended.failure_detail ?? ""
            assert.deepStrictEqual([ended.status, ended.phases.at(-2)?.status], ["failed", phase], `${what}: ${text}`)
            assert.match(text, detail, what)
            // No internals: no address, path or token.
            assert.notMatch(text, /\d+\.\d+\.\d+\.\d+|localhost|:\/\/|(^|[\s"'`(])\/\w|hf_/, what)
            assert.notInclude(text, folder)
            // What happened, and a sentence that says what to do.
            assert.isAbove(text.split(". ").length, 1, `${what}: ${text}`)
            return text
          })
      )
      assert.strictEqual(new Set(details).size, details.length)

      yield* eventually("the cluster holds the serving engine and nothing else", objectsOfRuns(kube), (objects) => objects.join() === `Pod ${served.id}`)
      const answers = yield* stop
      assert.isAbove(answers.length, 2)
      assert.deepStrictEqual([...new Set(answers.map(({ text }) => text))], [before])
      const finished = yield* caller.call("POST", `/v1/deployments/${missing.id}/cancel`)
      assert.deepStrictEqual([finished.status, codeOf(finished)], [409, "deployment_finished"])
    }).pipe(Effect.scoped),
  600_000
)
