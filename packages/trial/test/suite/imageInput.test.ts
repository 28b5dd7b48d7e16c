import { assert, describe, it } from "@effect/vitest"
import { initialImageProfile } from "@seatrial/domain"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { imageInput } from "../../src/suite/imageInput.ts"
import { runSuite } from "../../src/suite/runSuite.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
import { type SightFault, serveSeeingEngine } from "./seeingEngine.ts"
import { subjectAt } from "./subject.ts"

const tried = (fault?: SightFault, change: Partial<SuiteSubject["capabilities"]> = {}, worded?: (shows: string, other: string) => string) =>
  Effect.gen(function* () {
    const { url } = yield* serveSeeingEngine(fault, worded)
    const subject = yield* subjectAt(url)
    const image_input = { ...initialImageProfile, processor_revision: "c".repeat(40) }
    const capabilities = { ...subject.capabilities, supports_image_input: true, image_input, ...change }
    const { report } = yield* runSuite({ ...subject, capabilities }, () => [imageInput])
    return report
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

describe("image_input", () => {
  it.live("passes an engine that reads color, digits as PNG and JPEG, their order, and counts their tokens", () =>
    Effect.gen(function* () {
      const { checks, passed, withdrawn } = yield* tried()
      assert.deepStrictEqual(checks[0], { name: "image_input", passed: true, detail: "84 and 276 prompt tokens, 20 without an image" })
      assert.deepStrictEqual([passed, withdrawn ?? []], [true, []])
    })
  )

  for (const [fault, detail] of [
    ["blind", "the digits of a PNG are not read"],
    ["takes no JPEG", "the digits of a JPEG are not read"],
    ["does not count images", "an image takes no tokens"],
    ["first image only", "the order of two images is lost"],
    ["images in front", "the order of two images is lost"],
    ["images in any order", "the order of two images is lost"],
    ["names both images", "the order of two images is lost"]
  ] as const) {
    it.live(`withdraws images from an engine with the fault: ${fault}`, () =>
      Effect.gen(function* () {
        const { checks, withdrawn } = yield* tried(fault)
        assert.deepStrictEqual(checks[0]?.passed, false)
        assert.include(checks[0]?.detail, detail)
        assert.deepStrictEqual(withdrawn, ["image_input"])
      })
    )
  }

  for (const worded of [
    (shows: string, other: string) => `The ${other} image is red; the ${shows} shows digits.`,
    (shows: string, other: string) => `The ${shows} image shows digits, the ${other} is red.`,
    (shows: string, other: string) => `Of the two, the ${other} image does not show any digits, while the ${shows} one reads 4071.`,
    (shows: string) => `Between the first and the second image, the ${shows} one shows digits.`,
    (shows: string, other: string) => `The ${other} one is plain red and the ${shows} image contains numbers.`
  ]) {
    it.live(`accepts: ${worded("second", "first")}`, () =>
      Effect.gen(function* () {
        assert.isTrue((yield* tried(undefined, {}, worded)).checks[0]?.passed)
        const turned = yield* tried(undefined, {}, (shows, other) => worded(other, shows))
        assert.include(turned.checks[0]?.detail, "the order of two images is lost")
      })
    )
  }

  it.live("sends no second image if only one is accepted, and none to a text model", () =>
    Effect.gen(function* () {
      const one = yield* tried("first image only", { image_input: { ...initialImageProfile, max_images: 1, processor_revision: "c".repeat(40) } })
      assert.deepInclude(one.checks[0], { passed: true, detail: "84 and 276 prompt tokens, at most one image in a request" })
      const none = yield* tried("blind", { supports_image_input: false, image_input: null })
      assert.isUndefined(none.checks.find(({ name }) => name === "image_input"))
    })
  )
})
