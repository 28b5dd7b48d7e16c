import type { ImageInput, OrgId } from "@seatrial/domain"
import { Effect } from "effect"
import type { Departure } from "../Departure.ts"
import { clientClosed, Refusal, unavailable, unsupportedValue } from "../refusals.ts"
import type { CheckedRequest } from "../vocabulary/checkRequest.ts"
import { checkImages } from "./checkImages.ts"
import type { ImageFetcher } from "./ImageFetcher.ts"
import { fillPlaces } from "./ImagePlaces.ts"

/** Fails when there is nobody to answer any more. */
const departed = (departure: Departure): Effect.Effect<never, Refusal> =>
  Effect.callback((resume) => {
    const leave = () => resume(Effect.fail(departure.reason === "gone" ? clientClosed : unavailable))
    if (departure.aborted) return leave()
    departure.addEventListener("abort", leave)
    return Effect.sync(() => departure.removeEventListener("abort", leave))
  })

/** Checks the images of a request, downloads those that are elsewhere, and gives the request with all of them in its body: the engine never goes out. */
export const inlineImages = Effect.fnUntraced(function* (
  { fetch }: ImageFetcher["Service"],
  orgId: OrgId,
  limits: typeof ImageInput.Type | null,
  request: CheckedRequest,
  departure: Departure
): Effect.fn.Return<CheckedRequest, Refusal> {
  const { engineBody, images } = request
  if (limits === null) return yield* unsupportedValue("The model takes no images.", images[0]?.param ?? null)
  const checked = checkImages(images, limits)
  if (checked instanceof Refusal) return yield* checked
  const known = Effect.forEach(checked, (image) => ("url" in image ? fetch(orgId, image, limits) : Effect.succeed(image)), { concurrency: "unbounded" })
  const whole = checked.some((image) => "url" in image) ? Effect.raceFirst(known, departed(departure)) : known
  return { ...request, images: [], engineBody: fillPlaces(engineBody, images, yield* whole) }
})
