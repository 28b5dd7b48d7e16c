import { open, readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Result } from "effect"
import { parseAdapterConfig } from "./adapterConfig.ts"
import { hashAdapter } from "./adapterHash.ts"
import { adapterTensors } from "./adapterTensors.ts"
import { parseJsonObject } from "./boundedJson.ts"
import { Unreadable } from "./failures.ts"
import { onDisk } from "./fetch/onDisk.ts"
import { headerLength } from "./safetensors.ts"

/**
 * The content hash of an adapter in a folder. Its files were verified and its header was validated during screening.
 */
export const adapterContentHash = Effect.fnUntraced(function* (directory: string) {
  const configBytes = yield* onDisk(() => readFile(join(directory, "adapter_config.json")))
  const config = yield* Effect.fromResult(Result.flatMap(parseJsonObject(configBytes, "adapter_config.json"), parseAdapterConfig))
  const name = "adapter_model.safetensors"
  return yield* Effect.acquireUseRelease(
    onDisk(() => open(join(directory, name))),
    (file) =>
      Effect.gen(function* () {
        const read = (from: number, to: number) =>
          onDisk(async () => {
            const bytes = new Uint8Array(to - from)
            for (let done = 0; done < bytes.length; ) {
              const { bytesRead } = await file.read(bytes, done, bytes.length - done, from + done)
              if (bytesRead === 0) throw new Error("the file ends early")
              done += bytesRead
            }
            return bytes
          })
        const { size } = yield* onDisk(() => file.stat())
        if (size < 10) return yield* new Unreadable({ reason: `${name} is too short to be a safetensors file.` })
        const length = yield* Effect.fromResult(headerLength(yield* read(0, 8), size, name))
        const header = yield* read(8, 8 + length)
        const tensors = yield* Effect.fromResult(Result.flatMap(parseJsonObject(header, `The header of ${name}`), adapterTensors))
        return yield* hashAdapter(config, tensors, (from, to) => read(8 + length + from, 8 + length + to))
      }),
    (file) => Effect.promise(() => file.close())
  )
})
