import type { LowRank } from "../../src/Adapter.ts"
import type { Mutants } from "./Mutant.ts"

type Pairs = ReadonlyMap<string, LowRank>

const scaled = (factor: number) => () => ({
  adapter: (pairs: Pairs): Pairs => new Map([...pairs].map(([name, pair]) => [name, { ...pair, scale: pair.scale * factor }]))
})
const only = (keeps: (name: string) => boolean) => () => ({ adapter: (pairs: Pairs): Pairs => new Map([...pairs].filter(([name]) => keeps(name))) })

/** Faults in LoRA adapters. */
export const adapterMutants: Mutants = {
  adapter_dropped: { spoils: "the adapter is read and not applied", seams: only(() => false) },
  adapter_half: { spoils: "the adapter is applied at half its scale", seams: scaled(0.5) },
  adapter_x4: { spoils: "the adapter is applied at 4 times its scale", seams: scaled(4) },
  adapter_90: { spoils: "the adapter is applied at 0.9 of its scale", seams: scaled(0.9) },
  adapter_matrix_lost: { spoils: "one of the adapter's 28 matrices is not applied", seams: only((name) => !name.includes(".layers.3.self_attn.v_proj")) },
  adapter_module_lost: { spoils: "one projection of the adapter is not applied", seams: only((name) => !name.includes("v_proj")) },
  adapter_layer_lost: { spoils: "the last layer of the adapter is not applied", seams: only((name) => !name.includes(".layers.3.")) }
}
