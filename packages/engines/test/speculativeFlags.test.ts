import { describe, expect, it } from "vitest"
import { commandLines } from "../src/index.ts"
import { realEngine } from "./realEngine.ts"

describe("flags of speculative decoding and of adapters", () => {
  it.each(["vllm", "sglang"] as const)("of %s are refused, each by its name and with the reason", (runtime) => {
    const names = Object.keys(commandLines[runtime]).filter((name) => /(?:^|-)(?:spec|speculative|draft|eagle|mtp|loras?)(?:-|$)/.test(name))
    expect(names.length).toBeGreaterThan(10)
    const engine = realEngine(runtime)
    for (const name of names) {
      const flag = name.replaceAll("-", "_")
      const issue = engine.flagIssue({ [flag]: "1" })
      expect(issue?.flag, name).toBe(flag)
      expect(issue?.message.length, name).toBeGreaterThan(20)
    }
  })
})
