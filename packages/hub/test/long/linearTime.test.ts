import { assert, it } from "@effect/vitest"
import { readTemplate } from "@seatrial/domain"
import { Result } from "effect"
import { parseAdapterConfig } from "../../src/adapterConfig.ts"
import { parseJsonObject } from "../../src/boundedJson.ts"
import { asksForCode, parseModelConfig } from "../../src/modelConfig.ts"

it("hostile metadata of the maximum length is read in linear time", { timeout: 120_000 }, () => {
  const mib = 2 ** 20
  const filled = (piece: string, bytes = mib) => piece.repeat(Math.floor(bytes / piece.length))
  for (const piece of [
    "{",
    "{{",
    "{%",
    "{#",
    "{{'",
    '{% "\\',
    "{{ }}",
    "{# #}",
    "{%'%}",
    "'",
    " ",
    "tools",
    "thinking is ",
    "thinking ",
    "<think",
    "{{ enable_thinking",
    "\n"
  ])
    for (const end of ["", "}}", "%}", "'", "#}"]) readTemplate(filled(piece) + end)
  for (const piece of ["[", '{"a":', '"', "\\", '\\"', ",", "1", "1e", '"a":1,', '"a":"', "\u0000", "é", "[],", '{"auto_map":'])
    for (const [open, close] of [
      ["", ""],
      ["{", "}"],
      ['{"a":"', '"}'],
      ['{"architectures":["X"],"target_modules":"', '"}']
    ]) {
      const bytes = new TextEncoder().encode(`${open}${filled(piece)}${close}`)
      const parsed = parseJsonObject(bytes, "config.json")
      if (Result.isFailure(parsed)) assert.match(parsed.failure.reason, /^\P{Cc}{10,600}\.$/u)
      else {
        asksForCode(parsed.success)
        parseModelConfig(parsed.success, "BF16")
        parseAdapterConfig(parsed.success)
      }
    }
})
