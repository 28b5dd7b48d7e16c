import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { DeploymentProgress } from "@seatrial/domain"
import { Job, type KubeClient } from "@seatrial/kube"
import { makeRepository, SampleHub } from "@seatrial/local"
import { HostClassResource } from "@seatrial/operator"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { Context, Effect, Layer, Schema } from "effect"
import { seatrial } from "../../../packages/cli/test/runCommand.ts"
import { quietlyAltered } from "../../mutants/fileMutants.ts"
import { makeCaller } from "../Caller.ts"
import { openCluster, patiently, shortenBenchmark } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { makeStateFolder, startSystem } from "../LocalSystem.ts"
import { reachable } from "../reference/reachable.ts"
import { serving } from "../Served.ts"

const files = (of: Iterable<readonly [string, Uint8Array]>): Readonly<Record<string, Uint8Array>> => Object.fromEntries(of)

/**
 * Commits, each of which is new when it is deployed. The weights of `wrong` are not those that its reference was
 * computed from, as if the engine loaded them wrongly.
 */
const repository = makeRepository({
  name: "test/reference",
  commits: [
    { title: "Sound", tag: "sound", files: files(trainedFiles("tiny-chat")) },
    { title: "Loaded wrongly", tag: "wrong", files: files(quietlyAltered()) },
    { title: "Sound again", tag: "again", files: { ...files(trainedFiles("tiny-chat")), "README.md": "# Again\n" } }
  ]
})

const tagged = (tag: string) => ({ repo: repository.name, commit: repository.tags.get(tag) ?? "" })

/** With `REFERENCE_PYTHON` the real program computes the references; otherwise a program with their stored result. */
const computing = process.env.REFERENCE_PYTHON ?? fileURLToPath(new URL("../reference/standIn", import.meta.url))
const isReal = process.env.REFERENCE_PYTHON !== undefined

const computeReferences = (kube: KubeClient["Service"], referenceJob: object) =>
  patiently(kube.mergePatch(HostClassResource, serving.host_class, undefined, { spec: { referenceJob } }))

/** The same program, which begins when it is released. In a pod, `/tmp` is another folder. */
const makeLate = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() => mkdtemp("/var/tmp/seatrial-late-")),
    (folder) => Effect.promise(() => rm(folder, { recursive: true }))
  ),
  (folder) => {
    const [program, gate] = [join(folder, "late"), join(folder, "gate")]
    execFileSync("mkfifo", [gate])
    writeFileSync(program, `#!/bin/sh\ncat ${gate}\nexec "${computing}" "$@"\n`, { mode: 0o755 })
    return { program, release: Effect.promise(() => writeFile(gate, "released\n")) }
  }
)

const Listed = Schema.fromJsonString(
  Schema.Array(
    Schema.Struct({ repo: Schema.String, commit: Schema.String, source: Schema.optionalKey(Schema.String), code: Schema.optionalKey(Schema.String) })
  )
)

it.live(
  "the operator computes the reference of a commit by a Job, and refuses an engine that disagrees with it at its first trial",
  () =>
    Effect.gen(function* () {
      const folder = yield* makeStateFolder
      const { address } = Context.get(yield* Layer.build(SampleHub.layer({ port: 0, repositories: [repository] })), SampleHub)
      const { state } = yield* startSystem(folder, { SEATRIAL_DURABLE: "false", HF_ENDPOINT: address })
      const caller = makeCaller(state.address, state.api_key)
      const kube = yield* openCluster(state.kubeconfig)
      yield* shortenBenchmark(kube)
      const jobs = Effect.map(patiently(kube.list(Job, { namespace: "seatrial" })), (all) =>
        all.filter(({ metadata }) => metadata.name.startsWith("reference-"))
      )
      const listed = (list: "list" | "missing") =>
        Effect.map(seatrial(["admin", "references", list, "--json"], { DATABASE_URL: state.database_url, SEATRIAL_ADMIN: "test" }), ({ code, err, out }) => {
          assert.strictEqual(code, 0, err)
          return Schema.decodeUnknownSync(Listed)(out)
        })
      const deployed = (ref: string) => caller.deploy({ source: { kind: "model_hub", repo: repository.name, ref }, model_name: ref, serving })
      const tried = Effect.fnUntraced(function* ({ id }: { readonly id: string }) {
        const ended = yield* caller.finished(id)
        yield* eventually("the Job is gone", jobs, (left) => left.length === 0)
        return ended
      })

      const image = "ghcr.io/seatrial/reference-engine:0.1.0"
      const python = yield* reachable(computing)
      const job = { image, python, cpu: 1, memoryBytes: 2 ** 30, waitSeconds: 300 }
      yield* computeReferences(kube, job)
      const sound = yield* tried(yield* deployed("sound"))
      assert.deepStrictEqual([sound.status, sound.failure_detail], ["activated", null])
      assert.match(sound.checks.find(({ name }) => name === "reference_agrees")?.detail ?? "", /from Transformers 5\.\d+\.\d+/u)
      assert.deepStrictEqual(yield* listed("list"), [{ ...tagged("sound"), source: "operator" }])

      if (isReal) return
      // The reference comes when all other checks are done.
      const late = yield* makeLate
      yield* computeReferences(kube, { ...job, python: late.program })
      const waits = yield* deployed("wrong")
      const progress = caller.read(`/v1/deployments/${waits.id}/progress`, DeploymentProgress)
      yield* eventually("the checks are done", progress, ({ message }) => message.startsWith("All other checks are done."))
      yield* late.release
      const wrong = yield* tried(waits)
      assert.strictEqual(wrong.status, "failed")
      assert.match(wrong.failure_detail ?? "", /reference_agrees/u)

      // A program that fails is remembered, and the trial goes on without a reference.
      yield* computeReferences(kube, { ...job, python: "/bin/false" })
      const without = yield* tried(yield* deployed("again"))
      assert.strictEqual(without.status, "activated")
      assert.match(without.checks.find(({ name }) => name === "suite")?.detail ?? "", /no_reference: computation_failed/u)
      assert.deepStrictEqual(yield* listed("missing"), [{ ...tagged("again"), code: "computation_failed" }])
    }).pipe(Effect.scoped),
  900_000
)
