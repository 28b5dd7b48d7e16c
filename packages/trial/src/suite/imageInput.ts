import { crc32, deflateSync } from "node:zlib"
import { Effect } from "effect"
import { type TrialCheck, unexpected } from "./Check.ts"
import { converse, roomFor, secondsOf, withoutThinking } from "./SuiteSubject.ts"

type Pixel = readonly [red: number, green: number, blue: number]

const chunk = (name: string, data: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.length, 0)
  frame.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)])
}

/** A PNG of that many pixels a side, as a `data:` URL. */
const png = (side: number, pixel: (x: number, y: number) => Pixel): string => {
  const rows = Buffer.alloc(side * (1 + side * 3))
  for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) rows.set(pixel(x, y), y * (1 + side * 3) + 1 + x * 3)
  const header = Buffer.alloc(13)
  header.writeUInt32BE(side, 0)
  header.writeUInt32BE(side, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const bytes = Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))])
  return `data:image/png;base64,${bytes.toString("base64")}`
}

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

const written = "4071"
const red = () => png(224, () => [220, 20, 20])
const digits = () =>
  png(448, (x, y) => {
    const [column, row] = [Math.floor((x - 32) / 24), Math.floor((y - 160) / 24)]
    const ink = rowsOf(Number(written[Math.floor(column / 4)]))[row]?.[column % 4] === "1" && column >= 0 && row >= 0
    return ink ? [0, 0, 0] : [255, 255, 255]
  })

const image = (url: string) => ({ type: "image_url", image_url: { url } })
const words = (text: string) => ({ type: "text", text })

/** Images are seen, in the order in which they stand. */
export const imageInput: TrialCheck = {
  name: "image_input",
  class: "capability",
  purpose: "Images are seen: a colour, four digits, and both in their order; larger ones take more tokens",
  limitSeconds: secondsOf(40, 3),
  skipped: ({ capabilities }) => (capabilities.supports_image_input ? null : "text only"),
  run: Effect.fnUntraced(function* (subject) {
    const fields = { max_tokens: roomFor(subject, 64), ...withoutThinking(subject) }
    const ask = (...content: ReadonlyArray<object>) => converse(subject, [{ role: "user", content }], fields)
    const colour = yield* ask(image(red()), words("Which colour fills this image? Answer with one word."))
    if (!colour.content.toLowerCase().includes("red")) return yield* unexpected("the colour is not seen")
    const read = yield* ask(image(digits()), words("Which four digits does this image show?"))
    if (!read.content.includes(written)) return yield* unexpected("the digits are not read")
    const second = yield* ask(
      image(red()),
      words("and then"),
      image(digits()),
      words("Which of the two images shows digits, the first or the second? Answer with one word.")
    )
    if (!second.content.toLowerCase().includes("second")) return yield* unexpected("the order of two images is lost")
    const [small, large] = [colour.usage.prompt_tokens, read.usage.prompt_tokens]
    return small < 16 ? yield* unexpected(`${small} prompt tokens with an image`) : `${small} and ${large} prompt tokens`
  })
}
