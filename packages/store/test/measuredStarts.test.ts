import { assert, layer } from "@effect/vitest"
import type { Fit, RepositoryFacts } from "@seatrial/domain"
import { Effect } from "effect"
import { Deployments, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { capabilities, capacityRow, checks, engineDigest, engineImage, estimate, facts, makeCaller, measured, newModel, settings } from "./support/index.ts"

const gib = 2 ** 30
const part = (low: number, high: number) => ({ low: low * gib, high: high * gib })
const components = {
  budget: 72 * gib,
  activation: part(1, 2),
  runtime: part(0, 1),
  graphs: part(0, 0.5),
  weightsBeside: part(0, 0.5),
  adapters: part(0, 0),
  afterPool: part(0, 1),
  pool: part(52, 55),
  sequence: gib,
  stepTokens: 8_192
}
const weighed = { ...estimate, gpu_pool: "NVIDIA-H100-80GB-HBM3", weights_bytes: 16 * gib }

layer(layerStore, { excludeTestServices: true })("measured starts", (it) => {
  it.effect("of an architecture are visible to their own organization only, as memory use without the weights", () =>
    Effect.gen(function* () {
      const [deployments, runs] = [yield* Deployments, yield* Runs]
      const owner = yield* makeCaller("measured-own")
      const stranger = yield* makeCaller("measured-other")
      const start = Effect.fnUntraced(function* (
        caller: typeof owner.caller,
        key: string,
        input: { readonly estimate: Fit & { readonly components?: object }; readonly cache: number | null; readonly startFacts?: RepositoryFacts }
      ) {
        const { orgId } = caller
        const { id } = yield* deployments.create(newModel(caller, key, key))
        const screened = { facts: input.startFacts ?? facts, settings, engineVersion: "vllm-1", engineImage, capabilities }
        yield* runs.recordScreening({ ...screened, id, orgId, estimate: input.estimate })
        for (const [from, to] of [
          ["screening", "provisioning"],
          ["provisioning", "booting"],
          ["booting", "checking"],
          ["checking", "measuring"]
        ] as const) {
          if (from === "checking") {
            yield* runs.recordEngineImage(id, orgId, { image: engineImage, digest: engineDigest })
            yield* runs.recordChecks(id, orgId, checks)
          }
          assert.isTrue(yield* runs.enter({ id, orgId, from, to, reason: "Test" }), `${from} to ${to}`)
        }
        assert.isTrue(yield* runs.recordMeasured(id, orgId, { ...measured, kv_cache_bytes: input.cache }, capacityRow))
      })
      const complete = { ...weighed, components }
      yield* start(owner.caller, "measured-a", { estimate: complete, cache: 53 * gib })
      // Ignored: an engine without a report, an estimate without components, a start limited by something else, and
      // another architecture.
      yield* start(owner.caller, "measured-b", { estimate: complete, cache: null })
      yield* start(owner.caller, "measured-c", { estimate: weighed, cache: 53 * gib })
      const { stepTokens: _, ...older } = components
      yield* start(owner.caller, "measured-f", { estimate: { ...weighed, components: older }, cache: 53 * gib })
      yield* start(owner.caller, "measured-d", { estimate: complete, cache: gib })
      const other = { ...facts, config: { ...facts.config, architecture: "OtherForCausalLM" } }
      yield* start(owner.caller, "measured-e", { estimate: complete, cache: 53 * gib, startFacts: other })

      const input = {
        gpu_pool: "NVIDIA-H100-80GB-HBM3",
        gpu_count: 1,
        engine_version: "vllm-1",
        quantization: "none",
        step_tokens: 8_192,
        estimated: part(1, 4),
        measured: 3 * gib
      }
      const { architecture } = facts.config
      for (const ask of [deployments.measuredStarts, runs.measuredStarts]) {
        assert.deepStrictEqual(yield* ask(owner.caller.orgId, architecture), [{ ...input, architecture }])
        assert.deepStrictEqual(yield* ask(owner.caller.orgId, "OtherForCausalLM"), [{ ...input, architecture: "OtherForCausalLM" }])
        assert.deepStrictEqual(yield* ask(stranger.caller.orgId, architecture), [])
      }
      // Many later starts on another GPU type return ten entries, and do not displace entries of this one.
      for (let n = 0; n < 33; n++) {
        yield* start(owner.caller, `measured-other-${n}`, { estimate: { ...complete, gpu_pool: "Other-Card" }, cache: 53 * gib })
      }
      const pools = (yield* runs.measuredStarts(owner.caller.orgId, architecture)).map(({ gpu_pool }) => gpu_pool)
      assert.deepStrictEqual([pools.filter((pool) => pool === "Other-Card").length, pools.at(-1)], [10, "NVIDIA-H100-80GB-HBM3"])
    })
  )
})
