import { Effect } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { digits, whichDigits } from "./imageInput.ts"
import { claims, greedily, messageText, post, responseText } from "./pathBodies.ts"
import { dialects, type Path } from "./pathCalls.ts"
import { jpegOf, pngOf } from "./pictures.ts"
import { mayThink, roomAfterThought, type SuiteSubject, thoughtSeconds } from "./SuiteSubject.ts"

const tokens = 64
const roomOf = (subject: SuiteSubject): number => (mayThink(subject) ? roomAfterThought(subject, tokens) : tokens)

/** A question about an image, in the format that the gateway sends. */
const bodies: Readonly<Record<Path, (subject: SuiteSubject, url: string) => object>> = {
  "/v1/responses": (subject, image_url) => ({
    ...greedily,
    input: [
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_image", image_url, detail: "auto" },
          { type: "input_text", text: whichDigits.text }
        ]
      }
    ],
    max_output_tokens: roomOf(subject),
    store: false,
    cache_salt: subject.salt
  }),
  "/v1/messages": (subject, url) => ({ ...greedily, messages: [{ role: "user", content: imageBlocks(url) }], max_tokens: roomOf(subject) })
}

const imageBlocks = (url: string) => {
  const [, media_type = "", data = ""] = /^data:(.*);base64,(.*)$/.exec(url) ?? []
  return [{ type: "image", source: { type: "base64", media_type, data } }, whichDigits]
}

/** A question about an image in the format of a message. */
export const messageWithImage = () => [{ role: "user", content: imageBlocks(pngOf(digits("4071"))) }]
export const messageWithoutImage = [{ role: "user", content: [whichDigits] }]

const imagesOn = (name: string, path: Path): TrialCheck => ({
  name,
  class: "capability",
  usesConfirmedFeatures: true,
  purpose: `On ${path} the digits of a PNG and of a JPEG are read`,
  limitSeconds: (subject) => seconds(30)() + (mayThink(subject) ? thoughtSeconds(2) : 0),
  skipped: (subject) => claims(path)(subject) ?? (subject.capabilities.supports_image_input ? null : "text only"),
  run: Effect.fnUntraced(function* (subject) {
    const { cut } = dialects[path]
    for (const [kind, written, url] of [
      ["PNG", "4071", pngOf(digits("4071"))],
      ["JPEG", "8253", jpegOf(digits("8253"))]
    ] as const) {
      const answer = yield* post(subject, path, bodies[path](subject, url))
      const text = path === "/v1/messages" ? messageText(answer) : responseText(answer)
      // The model may still reason at its token limit. The chat route was checked without that limit.
      if (mayThink(subject) && cut(answer)) continue
      if (!text.includes(written)) return yield* unexpected(`the digits of a ${kind} are not read`)
    }
    return "2 images"
  })
})

/**
 * Images on paths other than the chat route. A path that ignores them would answer about nothing, so they are withdrawn
 * for that path.
 */
export const pathImages: ReadonlyArray<TrialCheck> = [imagesOn("responses_images", "/v1/responses"), imagesOn("messages_images", "/v1/messages")]
