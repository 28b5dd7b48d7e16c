import { createHash } from "node:crypto"
import * as Schema from "effect/Schema"
import { namedWeights, type Weights } from "./LlamaWeights.ts"
import type { ModelConfig } from "./ModelConfig.ts"
import { decodeBody } from "./Protocol.ts"
import { type Tensor, toFloat32 } from "./Tensor.ts"

const ValuesBody = Schema.Struct({ name: Schema.String, truncate_size: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))) })
const CheckBody = Schema.Struct({ action: Schema.optionalKey(Schema.String) })

const sha256 = (...parts: ReadonlyArray<string | Uint8Array>): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest("hex")
}

const valuesOf = (tensor: Tensor | Float32Array): Float32Array => (tensor instanceof Float32Array ? tensor : toFloat32(tensor))

/** An answer: a status and a JSON body. */
interface JsonAnswer {
  readonly status: number
  readonly body: unknown
}

/** Reports the loaded weights as SGLang does: the first values of a tensor, and a hash of all tensors. */
export class LoadedWeights {
  private readonly tensors: ReadonlyMap<string, Tensor | Float32Array>

  constructor(config: ModelConfig, weights: Weights) {
    this.tensors = namedWeights(config, weights)
  }

  /** `/get_weights_by_name`: the first values of a vector, or the first rows of a matrix. */
  values(text: string): JsonAnswer {
    const { name, truncate_size = 100 } = decodeBody(ValuesBody, text)
    const tensor = this.tensors.get(name)
    if (tensor === undefined) return { status: 400, body: { error: { message: "Get parameter by name failed" } } }
    const values = valuesOf(tensor)
    const [rows = 0, width] = tensor instanceof Float32Array ? [tensor.length] : tensor.shape
    const first = Math.min(rows, truncate_size)
    if (width === undefined) return { status: 200, body: [...values.subarray(0, first)] }
    return { status: 200, body: Array.from({ length: first }, (_, row) => [...values.subarray(row * width, (row + 1) * width)]) }
  }

  /**
   * `/weights_checker` with the read-only action. The hash is the same for the same values, independent of their stored
   * type.
   */
  check(text: string): JsonAnswer {
    const { action = "checksum" } = decodeBody(CheckBody, text === "" ? "{}" : text)
    if (action !== "checksum") return { status: 400, body: { success: false, message: `Unsupported action='${action}'` } }
    const checksums = Object.fromEntries(
      [...this.tensors].map(([name, tensor]) => {
        const { buffer, byteLength, byteOffset } = valuesOf(tensor)
        return [name, sha256(new Uint8Array(buffer, byteOffset, byteLength)).slice(0, 16)]
      })
    )
    const all = sha256(...Object.entries(checksums).sort().flat())
    const parallelism_info = { role: "target", tp_rank: 0, tp_size: 1, dp_rank: 0, dp_size: 1, pp_rank: 0, pp_size: 1, rank: 0, size: 1 }
    const ranks = [{ checksums, per_gpu_checksum: all, parallelism_info }]
    return { status: 200, body: { success: true, message: "Success.", ranks, per_engine_checksum: sha256(all) } }
  }
}
