import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { cpuVllm } from "../../src/start/cpuVllm.ts"

const command = join(import.meta.dirname, "../../vllm/vllm")

describe("a vLLM for processors", () => {
  it("is started with the operator's arguments and a cache for three requests of the longest context", () => {
    const words = (...args: ReadonlyArray<string>) => execFileSync(command, args, { env: { CPU_VLLM: "/bin/echo" }, encoding: "utf8" }).trim()
    const more = "--enforce-eager --block-size=32 --num-gpu-blocks-override"
    assert.strictEqual(words("serve", "--model=/models/a b", "--max-model-len=512"), `serve --model=/models/a b --max-model-len=512 ${more}=50`)
    assert.strictEqual(words("serve"), `serve ${more}=98`)
  })

  it.effect("is refused if it is not a program", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(cpuVllm("/nowhere/vllm"))
      assert.match(refused.message, /^--vllm: there is no program \/nowhere\/vllm\./u)
      for (const path of [import.meta.filename, import.meta.dirname]) assert.include((yield* Effect.flip(cpuVllm(path))).message, "there is no program")
    })
  )

  it.effect("computes no references if its folder has no Python", () =>
    Effect.gen(function* () {
      const { hostClass, images } = yield* cpuVllm(command)
      assert.deepStrictEqual(hostClass.spec.referenceJob, { enabled: false })
      assert.deepStrictEqual(
        Object.values(images).map(({ environment }) => environment.CPU_VLLM),
        [command]
      )
    })
  )
})
