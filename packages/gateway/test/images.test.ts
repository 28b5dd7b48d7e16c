import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { checkImageCount, checkImages } from "../src/images/checkImages.ts"
import { fillPlaces, ImagePlaces } from "../src/images/ImagePlaces.ts"
import { imageUrl } from "../src/images/imageUrl.ts"
import { readBase64 } from "../src/images/readBase64.ts"
import { readImageHeader } from "../src/images/readImageHeader.ts"
import { Refusal } from "../src/refusals.ts"
import { dataUrl, frame, ihdr, jpeg, jpegOf, limits, padded, png, pngChunk, pngSignature, segment } from "./pictures.ts"

const placesOf = (urls: ReadonlyArray<string>) => {
  const places = new ImagePlaces()
  for (const [index, url] of urls.entries()) places.add(`messages[${index}].content[0].image_url.url`, url)
  return places.list
}

/** `ok`, or the error code. */
const verdict = (...urls: ReadonlyArray<string>): string => {
  const checked = checkImages(placesOf(urls), limits)
  return checked instanceof Refusal ? checked.code : "ok"
}
const inline = (image: Buffer, type?: string) => verdict(dataUrl(image, type))

const max = limits.max_bytes_per_image

describe("an image in a request", () => {
  it("is accepted up to each limit, and not above it", () => {
    const cases: ReadonlyArray<readonly [what: string, image: Buffer, expected: string]> = [
      ["one pixel", png(1, 1), "ok"],
      ["a PNG of the longest side", png(4_096, 1_024), "ok"],
      ["a PNG that is one wider", png(4_097, 1), "image_too_large"],
      ["a PNG that is one higher", png(1, 4_097), "image_too_large"],
      ["a PNG of the most pixels", png(2_048, 2_048), "ok"],
      ["a PNG of one row more", png(2_048, 2_049), "image_too_large"],
      ["a PNG of no width", png(0, 1), "image_parse_error"],
      ["a PNG of no height", png(1, 0), "image_parse_error"],
      ["a JPEG of the longest side", jpeg(4_096, 1_024), "ok"],
      ["a JPEG that is one wider", jpeg(4_097, 1), "image_too_large"],
      ["a JPEG that is one higher", jpeg(1, 4_097), "image_too_large"],
      ["a JPEG of one row more", jpeg(1_024, 4_097), "image_too_large"],
      ["a JPEG of no width", jpeg(0, 1), "image_parse_error"],
      ["a JPEG whose height comes later", jpeg(1, 0), "image_parse_error"],
      ["a JPEG of 64 scans", jpeg(8, 8, 64), "ok"],
      ["a JPEG of 65 scans", jpeg(8, 8, 65), "image_parse_error"],
      ["the most bytes", padded(png(8, 8), max), "ok"],
      ["one byte more", padded(png(8, 8), max + 1), "image_file_too_large"],
      ["nothing", Buffer.alloc(0), "empty_image_file"],
      ["a GIF", Buffer.from("GIF89a\x01\0\x01\0", "latin1"), "unsupported_image_media_type"],
      ["a picture of SVG", Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), "unsupported_image_media_type"]
    ]
    for (const [what, image, expected] of cases) assert.strictEqual(inline(image), expected, what)
  })

  it("with a small file and huge dimensions is refused", () => {
    const bomb = padded(Buffer.concat([pngSignature, ihdr(30_000, 30_000), pngChunk("IDAT", Buffer.alloc(0))]), 109_000)
    assert.strictEqual(inline(bomb), "image_too_large")
  })

  it("has the type of its first bytes, whatever is declared, and is sent with that type", () => {
    for (const declared of ["image/png", "image/jpeg", "image/jpg", "image/gif", "text/html", "", "image/png;charset=utf-8"]) {
      const checked = checkImages(placesOf([dataUrl(jpeg(8, 8), declared)]), limits)
      assert.deepStrictEqual(checked, [{ mediaType: "image/jpeg", base64: jpeg(8, 8).toString("base64") }], declared)
    }
  })

  it("with truncated or ambiguous headers is refused", () => {
    const [whole, picture] = [png(8, 8), jpeg(8, 8)]
    for (let length = 8; length < 24; length++) assert.strictEqual(readImageHeader(whole.subarray(0, length)), "unreadable", `PNG of ${length}`)
    for (let length = 3; length < 20 + 10; length++) assert.strictEqual(readImageHeader(picture.subarray(0, length)), "unreadable", `JPEG of ${length}`)
    const cases: ReadonlyArray<readonly [what: string, image: Buffer]> = [
      ["a header that is not the first chunk", Buffer.concat([pngSignature, pngChunk("tEXt", Buffer.alloc(13)), ihdr(8, 8)])],
      ["a header of another length", Buffer.concat([pngSignature, pngChunk("IHDR", Buffer.alloc(14, 1))])],
      [
        "a second header, which decoders would use",
        Buffer.concat([pngSignature, ihdr(8, 8), pngChunk("tEXt", Buffer.alloc(9)), ihdr(30_000, 30_000), pngChunk("IDAT", Buffer.alloc(9))])
      ],
      ["a second frame", jpegOf([frame(8, 8), frame(30_000, 30_000, 0xc2)])],
      ["a scan before the frame", Buffer.concat([Buffer.from([0xff, 0xd8]), segment(0xda, Buffer.alloc(6)), frame(8, 8)])],
      ["the end before the frame", Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xd9]), frame(8, 8)])],
      ["a second start of image", Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xd8]), frame(8, 8)])],
      ["a segment shorter than its own length", Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 1]), frame(8, 8)])],
      ["a segment longer than the file", Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0xff, 0xff]), frame(8, 8)])],
      ["a frame too short for a size", Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xc0, 0, 7, 8, 0, 8, 0, 8])])],
      ["a missing marker", Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 2, 0]), frame(8, 8)])]
    ]
    for (const [what, image] of cases) assert.strictEqual(inline(image), "image_parse_error", what)
  })

  it("may have every kind of frame, and fill bytes between segments", () => {
    for (let marker = 0xc0; marker <= 0xcf; marker++) {
      const isFrame = ![0xc4, 0xc8, 0xcc].includes(marker)
      assert.strictEqual(inline(jpegOf([frame(8, 8, marker)])), isFrame ? "ok" : "image_parse_error", marker.toString(16))
    }
    const between = [
      Buffer.from([0xff, 0xff, 0xff]),
      Buffer.from([0xff, 0x01]),
      Buffer.from([0xff, 0xd0]),
      Buffer.from([0xff, 0xd7]),
      segment(0xfe, Buffer.alloc(0))
    ]
    assert.deepStrictEqual(readImageHeader(jpegOf([...between, frame(9, 7), segment(0xc4, Buffer.alloc(20))])), { format: "jpeg", width: 9, height: 7 })
  })

  it("is counted over the whole request", () => {
    const one = dataUrl(png(8, 8))
    assert.strictEqual(verdict(one, one), "ok")
    const refusal = checkImageCount(placesOf([one, one, one]), limits)
    assert.deepStrictEqual([refusal?.code, refusal?.param], ["too_many_images", "messages[2].content[0].image_url.url"])
    assert.strictEqual(checkImageCount(placesOf([one]), null)?.code, "unsupported_value")
  })

  it("must be base64 with padding and without white space", () => {
    const good = png(8, 8).toString("base64")
    const bad = [
      good.slice(1),
      good.slice(0, -1),
      `${good.slice(0, -4)}====`,
      good.replace(/.{4}/, "QQ=="),
      good.replace(/.{4}/, " ivB"),
      `${good}\n   `,
      good.replace("iV", "-V"),
      good.replace("iV", "_V"),
      good.replace("iV", "é√")
    ]
    for (const text of bad) assert.strictEqual(verdict(`data:image/png;base64,${text}`), "invalid_base64_image", text)
    assert.strictEqual(verdict(`DATA:image/png;BASE64,${good}`), "ok")
    assert.strictEqual(verdict(`data:image/png;base64,${"A".repeat((max / 3) * 4 + 4)}`), "image_file_too_large")
  })

  it("must be inline or an https URL", () => {
    const good = ["https://example.com/a.png", "https://example.com:443/a.png?x=1#y", "HTTPS://EXAMPLE.COM", "https://münchen.example/ä"]
    for (const url of good) assert.strictEqual(verdict(url), "ok", url)
    const bad = [
      "",
      "a.png",
      "/etc/passwd",
      "file:///etc/passwd",
      "http://example.com/a.png",
      "ftp://example.com/a",
      "https://",
      "//example.com/a",
      "https://example.com:8443/a",
      "https://user@example.com/a",
      "https://:pw@example.com/a",
      "https://127.0.0.1/a",
      "https://8.8.8.8/a",
      "https://[::1]/a",
      "https://[2606:4700::1]/a",
      "https://2130706433/a",
      "https://0x7f.1/a",
      "https://0177.0.0.1/a",
      "https://127.1/a",
      "https://①②⑦.⓪.⓪.①/a",
      "javascript:alert(1)",
      "blob:https://example.com/1",
      "file-abc123",
      png(8, 8).toString("base64"),
      "data:image/png,abc",
      "data:image/png;base64",
      `data:${"x".repeat(300)};base64,`,
      `https://example.com/${"a".repeat(8_192)}`
    ]
    for (const url of bad) assert.strictEqual(verdict(url), "invalid_image_url", url)
  })

  it("by URL is accepted regardless of its target before the download", () => {
    for (const host of ["localhost", "metadata.google.internal", "kubernetes.default.svc"]) assert.strictEqual(verdict(`https://${host}/`), "ok", host)
  })

  it("of a source or type that the model does not accept is refused", () => {
    const only = { ...limits, sources: ["base64"], formats: ["png"] }
    const code = (url: string) => {
      const checked = checkImages(placesOf([url]), only)
      return checked instanceof Refusal ? checked.code : "ok"
    }
    assert.deepStrictEqual(
      [code("https://example.com/a"), code(dataUrl(jpeg(8, 8))), code(dataUrl(png(8, 8)))],
      ["invalid_image_url", "unsupported_image_media_type", "ok"]
    )
  })

  it("replaces its own placeholder in the engine's body, and a caller cannot forge a placeholder", () => {
    const places = new ImagePlaces()
    const [first, second] = [places.add("a", "x"), places.add("b", "y")]
    const other = new ImagePlaces().add("a", "x")
    const body = JSON.stringify({ other, text: `say "${first}"`, one: first, two: { type: `${second}:type`, data: `${second}:data` }, again: first })
    const filled = fillPlaces(body, places.list, [
      { mediaType: "image/png", base64: "AAAA" },
      { mediaType: "image/jpeg", base64: "BBBB" }
    ])
    const image = "data:image/png;base64,AAAA"
    assert.deepStrictEqual(JSON.parse(filled), { other, text: `say "${first}"`, one: image, two: { type: "image/jpeg", data: "BBBB" }, again: image })
  })
})

const Change = Schema.Struct({
  at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2_000 })),
  to: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
})
const Changes = Schema.Array(Change).check(Schema.isMaxLength(12))

describe("an image of any bytes", () => {
  const seeds = [png(40, 30), jpeg(40, 30, 3), jpegOf([segment(0xe1, Buffer.alloc(300, 0xff)), frame(40, 30, 0xc2), segment(0xc4, Buffer.alloc(40))], 5)]
  it.prop("is read without a defect, and no size above the limits is accepted", [Changes, Schema.Int, Schema.Int], ([changes, pick, length]) => {
    const seed = seeds[Math.abs(pick) % seeds.length] ?? Buffer.alloc(0)
    const bytes = Buffer.from(seed)
    for (const { at, to } of changes) if (at < bytes.length) bytes[at] = to
    const cut = bytes.subarray(0, length % 3 === 0 ? Math.abs(length) % (bytes.length + 1) : bytes.length)
    const header = readImageHeader(cut)
    if (typeof header === "string") return
    assert.isTrue(header.width > 0 && header.height > 0)
    const { height, width } = header
    const fits = width <= limits.max_side_pixels && height <= limits.max_side_pixels && width * height <= limits.max_total_pixels
    assert.strictEqual(inline(cut), fits ? "ok" : "image_too_large")
  })

  const Text = Schema.Struct({ text: Schema.String, bytes: Schema.Array(Change) })
  it.prop("is base64 exactly if an independent decoder agrees", [Text], ([{ bytes, text }]) => {
    const characters = [...Buffer.from(bytes.map(({ to }) => to)).toString("base64")]
    for (const { at, to } of bytes.slice(0, 2)) if (at % 2 === 0) characters[at % (characters.length + 1)] = String.fromCharCode(to)
    for (const candidate of [text, characters.join(""), Buffer.from(text).toString("base64")]) {
      const strict = candidate.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(candidate)
      assert.strictEqual(Buffer.isBuffer(readBase64(candidate, max)), strict, JSON.stringify(candidate))
    }
  })

  it.prop("as a URL never throws", [Schema.String], ([text]) => {
    for (const url of [text, `https:${text}`, `https://${text}`, `data:${text}`, `data:image/png;base64,${text}`]) {
      verdict(url)
      const read = imageUrl(url, new URL("https://example.com/"))
      if (read !== null) assert.deepStrictEqual([read.protocol, read.port, read.username, read.password], ["https:", "", "", ""])
    }
  })
})
