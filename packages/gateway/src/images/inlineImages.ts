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

/** Fails when the request is aborted. */
const departed = (requestAbort: RequestAbort): Effect.Effect<never, Refusal> =>
  Effect.callback((resume) => {
    const leave = () => resume(Effect.fail(abortRefusal(requestAbort)))
    if (requestAbort.aborted) return leave()
    requestAbort.addEventListener("abort", leave)
    return Effect.sync(() => requestAbort.removeEventListener("abort", leave))
  })

/** The resources that a request holds before it reaches an engine. */
interface ImageHolder {
  readonly requestAbort: RequestAbort
  readonly share: BodyShare
  downloads: Map<string, Buffer> | undefined
}

/**
 * Bytes of memory per byte of a downloaded image: the image itself, and its base64 text before and after it is inserted
 * into the body.
 */
const bytesPerByte = 4

/**
 * Checks the images of a request, downloads the remote ones and inserts all of them into the body, so that engines need
 * no internet access. Images in `downloads` are not downloaded again.
 */
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
  if (limits === null) return yield* unsupportedValue("The model does not accept images.", images[0]?.param ?? null)
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
  const finished = checked.some((image) => "url" in image) ? Effect.raceFirst(known, departed(requestAbort)) : known
  return { ...request, images: [], imageCount: images.length, withoutImages: engineBody, engineBody: fillPlaces(engineBody, images, yield* finished) }
})
