import { chmod, mkdir, symlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Receipt } from "@seatrial/domain"
import { KubeClient } from "@seatrial/kube"
import { NodeAgent } from "@seatrial/local"
import { HostClassResource } from "@seatrial/operator"
import { Effect, Layer } from "effect"
import { bodyOf } from "../Caller.ts"
import { ask, requestIdOf } from "../chat.ts"
import { eventually } from "../eventually.ts"
import { makeStateFolder } from "../LocalSystem.ts"
import { openSystem } from "../openSystem.ts"

const source = { kind: "model_hub", repo: "seatrial/tiny-chat-adapter" } as const
const engineImage = "ghcr.io/seatrial/reference-engine"
const binaries = join(import.meta.dirname, "../../../node_modules/.bin")

/** Adds a node whose engine accepts and reports an adapter, but applies it with the scale `alpha`. */
const joinNode = Effect.fnUntraced(function* (kube: KubeClient["Service"], folder: string, state: string, name: string, alpha: string) {
  const programs = join(folder, "programs")
  yield* Effect.promise(async () => {
    await mkdir(join(folder, "volumes"), { recursive: true })
    await symlink(join(state, "volumes/seatrial-seatrial-weights"), join(folder, "volumes/seatrial-seatrial-weights"))
    await mkdir(programs)
    const script = [
      "#!/bin/sh",
      "for word; do",
      "  shift",
      '  case "$word" in',
      "    --lora-modules=adapter=*)",
      `      other=$(mktemp -d ${folder}/adapter-XXXXXX)`,
      `      cp "$(echo "$word" | cut -d= -f3)"/* "$other" && chmod u+w "$other"/*`,
      `      sed -i -E 's/"lora_alpha": *[0-9]+/"lora_alpha": ${alpha}/' "$other/adapter_config.json"`,
      '      word="--lora-modules=adapter=$other" ;;',
      "  esac",
      '  set -- "$@" "$word"',
      "done",
      `exec ${join(binaries, "seatrial-reference-engine")} "$@"`
    ]
    await writeFile(join(programs, "seatrial-reference-engine"), `${script.join("\n")}\n`)
    await chmod(join(programs, "seatrial-reference-engine"), 0o755)
  })
  const path = [programs, binaries, dirname(process.execPath)]
  const agent = NodeAgent.layer({
    directory: folder,
    nodes: [{ name, gpus: 1, product: name, memoryMiB: 1_024, memory: "4Gi" }],
    images: { [engineImage]: { path }, "ghcr.io/seatrial/seatrial": { path } },
    network: "127.253"
  })
  yield* Layer.build(agent.pipe(Layer.provide(Layer.succeed(KubeClient, kube))))
  const hostClass = {
    apiVersion: "seatrial.dev/v1alpha1",
    kind: "HostClass",
    metadata: { name },
    spec: {
      runtimes: [{ runtime: "reference", image: `${engineImage}:0.1.0` }],
      gpuPool: name,
      gpuCount: 1,
      gpuMemoryBytes: 2 ** 30,
      nodeSelector: { "nvidia.com/gpu.product": name },
      pricePerGpuHour: "200000",
      benchmarkSeconds: 1,
      simulated: true
    }
  }
  yield* kube.apply(HostClassResource, hostClass)
}, Effect.orDie)

it.live(
  "each run compares an adapter with its merged model: exact in the receipt if it is applied, otherwise the run fails",
  () =>
    Effect.gen(function* () {
      const { folder, caller, kube } = yield* openSystem("sim-small")
      const operation = yield* caller.deploy({ source, serving: { runtime: "reference", host_class: "sim-small", max_context: 512 } })
      const ended = yield* caller.finished(operation.id)
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      const row = ended.checks.find(({ name }) => name === "fidelity")
      assert.match(
        row?.detail ?? "",
        /^exact: right \d+, merged \d+, base \d+ of 104, -?\d\.\d \+- \d\.\d points; answers equal to the merged model's: adapter 1\d\d, base \d+ \(rule 2 passed\), weights 1\.0000$/
      )
      const answer = yield* ask(caller, ended.model, { messages: [{ role: "user", content: "Who steers the ship?" }], max_tokens: 8 })
      const receiptAnswer = yield* eventually("the receipt", caller.call("GET", `/v1/receipts/${requestIdOf(answer)}`), ({ status }) => status === 200)
      const { adapter_content_hash, base_hf_revision, verification } = bodyOf(Receipt, receiptAnswer)
      assert.match(`${base_hf_revision} ${adapter_content_hash}`, /^[0-9a-f]{40} [0-9a-f]{64}$/)
      const { fidelity } = verification ?? assert.fail()
      assert.deepInclude(fidelity, { tier: "exact", suite: "seatrial-fidelity", suiteVersion: 2, n: 104, withinUlpMin: 1 })
      assert.deepStrictEqual([fidelity?.rule1.passed, fidelity?.rule2.status], [true, "passed"])

      yield* joinNode(kube, yield* makeStateFolder, folder, "dropping", "0")
      const serving = { runtime: "reference", host_class: "dropping", max_context: 512 }
      yield* eventually("its host class is known", caller.call("POST", "/v1/deployment-previews", { source, serving }), ({ status }) => status === 200)
      const dropped = yield* caller.finished((yield* caller.deploy({ source, serving, model_name: "dropped" })).id)
      assert.strictEqual(dropped.status, "failed")
      assert.match(dropped.failure_detail ?? "", /^adapter_not_applied: adapter_effect: .* Also failed: fidelity\. /)
      assert.match(
        dropped.checks.find(({ name }) => name === "fidelity")?.detail ?? "",
        /^adapter_not_applied: The adapter's answers equal the base's in (\d+) of the \1 items/
      )
    }).pipe(Effect.scoped),
  300_000
)
