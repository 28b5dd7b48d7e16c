import { assert, it } from "@effect/vitest"
import { sizeInWords } from "../src/index.ts"

it("a size is shown in the largest unit with a value of at least one", () => {
  const cases = [
    [0, "0 B"],
    [1_000, "1000 B"],
    [1_024, "1.0 KiB"],
    [1_048_575, "1024.0 KiB"],
    [1_610_612, "1.5 MiB"],
    [2 ** 30, "1.0 GiB"],
    [2 ** 43, "8192.0 GiB"]
  ] as const
  for (const [bytes, words] of cases) assert.strictEqual(sizeInWords(bytes), words)
})
