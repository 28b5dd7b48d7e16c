import type { ImageInput, OrgId } from "@seatrial/domain"
import { Effect } from "effect"
import { abortRefusal } from "../abortRefusal.ts"
import type { BodyShare } from "../BodyBudget.ts"
import type { RequestAbort } from "../RequestAbort.ts"
import { Refusal, unsupportedValue } from "../refusals.ts"
import type { CheckedRequest } from "../vocabulary/checkRequest.ts"
import { checkImageBytes, checkImages, type RemoteImage } from "./checkImages.ts"
import type { ImageFetcher } from "./ImageFetcher.ts"
import { type CheckedImage, fillPlaces } from "./ImagePlaces.ts"

/** Fails when there is nobody to answer any more. */
const departed = (requestAbort: RequestAbort): Effect.Effect<never, Refusal> =>
  Effect.callback((resume) => {
    const leave = () => resume(Effect.fail(abortRefusal(requestAbort)))
    if (requestAbort.aborted) return leave()
    requestAbort.addEventListener("abort", leave)
    return Effect.sync(() => requestAbort.removeEventListener("abort", leave))
  })

/** What a request holds on its way in. */
interface ImageHolder {
  readonly requestAbort: RequestAbort
  readonly share: BodyShare
  downloads: Map<string, Buffer> | undefined
}

/** Bytes of memory for each byte of a downloaded image: itself, and its base64 in the body before and after it is put in. */
const bytesPerByte = 4

/** Checks the images of a request, downloads those that are elsewhere, and gives the request with all of them in its body: the engine never goes out. What is in `downloads` is not fetched again. */
export const inlineImages = Effect.fnUntraced(function* (
  { fetch }: ImageFetcher["Service"],
  orgId: OrgId,
  limits: typeof ImageInput.Type | null,
  request: CheckedRequest,
  holder: ImageHolder
): Effect.fn.Return<CheckedRequest, Refusal> {
  const { engineBody, images } = request
  const { requestAbort, share } = holder
  const downloads = holder.downloads ?? new Map<string, Buffer>()
  holder.downloads = downloads
  if (limits === null) return yield* unsupportedValue("The model takes no images.", images[0]?.param ?? null)
  const checked = checkImages(images, limits)
  if (checked instanceof Refusal) return yield* checked
  const inline = Effect.fnUntraced(function* (image: CheckedImage | RemoteImage) {
    if (!("url" in image)) return image
    const { param, url } = image
    let bytes = downloads.get(url.href)
    if (bytes === undefined) {
      bytes = yield* fetch(orgId, image, limits.max_bytes_per_image)
      const full = share.take(bytes.length * bytesPerByte)
      if (full !== null) return yield* full
      downloads.set(url.href, bytes)
    }
    const mediaType = checkImageBytes(bytes, limits, param)
    return typeof mediaType === "string" ? { mediaType, base64: bytes.toString("base64") } : yield* mediaType
  })
  const known = Effect.forEach(checked, inline, { concurrency: "unbounded" })
  const whole = checked.some((image) => "url" in image) ? Effect.raceFirst(known, departed(requestAbort)) : known
  return { ...request, images: [], imageCount: images.length, withoutImages: engineBody, engineBody: fillPlaces(engineBody, images, yield* whole) }
})
