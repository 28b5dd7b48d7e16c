import { Effect } from "effect"
import { type TrialCheck, unexpected } from "./Check.ts"
import { jpegOf, type Picture, pngOf } from "./pictures.ts"
import { converse, roomFor, type SuiteSubject, secondsOf, withoutThinking } from "./SuiteSubject.ts"

/** Digits of three by five points. */
const rowsOf = (digit: number): ReadonlyArray<string> =>
  [
    ["111", "101", "101", "101", "111"],
    ["010", "110", "010", "010", "111"],
    ["111", "001", "111", "100", "111"],
    ["111", "001", "111", "001", "111"],
    ["101", "101", "111", "001", "001"],
    ["111", "100", "111", "001", "111"],
    ["111", "100", "111", "101", "111"],
    ["111", "001", "010", "010", "010"],
    ["111", "101", "111", "101", "111"],
    ["111", "101", "111", "001", "111"]
  ][digit] ?? []

const red: Picture = { side: 224, pixel: () => [220, 20, 20] }

/** A picture of four digits. */
export const digits = (written: string): Picture => ({
  side: 448,
  pixel: (x, y) => {
    const [column, row] = [Math.floor((x - 32) / 24), Math.floor((y - 160) / 24)]
    const ink = rowsOf(Number(written[Math.floor(column / 4)]))[row]?.[column % 4] === "1" && column >= 0 && row >= 0
    return ink ? [0, 0, 0] : [255, 255, 255]
  }
})

const image = (url: string) => ({ type: "image_url", image_url: { url } })
const words = (text: string) => ({ type: "text", text })

const whichColour = words("Which colour fills this image? Answer with one word.")
export const whichDigits = words("Which four digits does this image show?")
const whichShows = words("Which of the two images shows digits, the first or the second? Answer with one word.")

const ask = (subject: SuiteSubject, ...content: ReadonlyArray<object>) =>
  converse(subject, [{ role: "user", content }], { max_tokens: roomFor(subject, 64), ...withoutThinking(subject) })

/**
 * Which of two images shows digits according to an answer: one name, or both if the answer is ambiguous. Statements
 * about the other image do not count.
 */
const namedIn = (content: string): ReadonlySet<string> => {
  const lowerCase = content.toLowerCase()
  const names = (text: string): ReadonlyArray<string> => text.match(/\b(?:first|second)\b/g) ?? []
  const about = lowerCase
    .split(/[.,;:\n]|\b(?:and|but|while|whereas)\b/)
    .filter((clause) => /digit|number|\d/.test(clause) && !/\b(?:no|not|without)\b|n['’]t/.test(clause))
  const mentioned = names(about.join(" "))
  return new Set(mentioned.length > 0 ? mentioned : names(lowerCase))
}

/** A color and digits are read, and their tokens are counted. Succeeds with the tokens of three prompts. */
const singleImages = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const colour = yield* ask(subject, image(pngOf(red)), whichColour)
  if (!colour.content.toLowerCase().includes("red")) return yield* unexpected("the color is not recognized")
  const png = yield* ask(subject, image(pngOf(digits("4071"))), whichDigits)
  if (!png.content.includes("4071")) return yield* unexpected("the digits of a PNG are not read")
  const jpeg = yield* ask(subject, image(jpegOf(digits("8253"))), whichDigits)
  if (!jpeg.content.includes("8253")) return yield* unexpected("the digits of a JPEG are not read")
  const blind = yield* ask(subject, whichColour)
  const [without, small, large] = [blind, colour, png].map(({ usage }) => usage.prompt_tokens)
  if (without === undefined || small === undefined || large === undefined || small <= without) return yield* unexpected("an image takes no tokens")
  return { without, small, large }
})

/** The order of two images is kept: turned around, the answer changes. */
const imagesInOrder = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const pictures = [image(pngOf(red)), words("and then"), image(jpegOf(digits("4071")))]
  const answers = yield* Effect.forEach([pictures, pictures.toReversed()], (content) => ask(subject, ...content, whichShows))
  const mentions = answers.map(({ content }) => namedIn(content))
  // An answer that names both may be right, but proves nothing if it is the answer to either order.
  const right = mentions[0]?.has("second") === true && mentions[1]?.has("first") === true
  if (!right || mentions.every(({ size }) => size === 2)) return yield* unexpected("the order of two images is lost")
})

/** The model sees images in the order of the request. */
export const imageInput: TrialCheck = {
  name: "image_input",
  class: "capability",
  purpose: "Images are read: a color, digits as PNG and JPEG, two images in either order; their tokens are counted",
  limitSeconds: secondsOf(40, 6),
  skipped: ({ capabilities }) => (capabilities.supports_image_input ? null : "text only"),
  run: Effect.fnUntraced(function* (subject) {
    const tokens = yield* singleImages(subject)
    if ((subject.capabilities.image_input?.max_images ?? 1) < 2) return `${tokens.small} and ${tokens.large} prompt tokens, at most one image in a request`
    yield* imagesInOrder(subject)
    return `${tokens.small} and ${tokens.large} prompt tokens, ${tokens.without} without an image`
  })
}
