import { isPublicAddress, type OrgId } from "@seatrial/domain"
import { Context, Effect, Layer } from "effect"
import { GatewayConfig } from "../GatewayConfig.ts"
import type { Refusal } from "../refusals.ts"
import { Turns } from "../Turns.ts"
import type { RemoteImage } from "./checkImages.ts"
import { download } from "./download.ts"
import { Internet } from "./Internet.ts"
import { failedToDownloadImage, imageFileTooLarge } from "./imageRefusals.ts"
import { imageUrl } from "./imageUrl.ts"

/** Most redirects that are followed for one image. */
const maxRedirects = 3

/** Milliseconds that an image may wait for other downloads of its organization. */
const maxWait = 30_000

/**
 * Downloads images of at most `limit` bytes from hosts on the internet. Each host name is resolved once, all its
 * addresses must be public, and the connection uses these addresses, so a DNS record that changes in between has no
 * effect. URLs are neither logged nor stored, because signed URLs are secrets.
 */
export class ImageFetcher extends Context.Service<
  ImageFetcher,
  { readonly fetch: (orgId: OrgId, image: RemoteImage, limit: number) => Effect.Effect<Buffer, Refusal> }
>()("seatrial/ImageFetcher") {
  static readonly layer = Layer.effect(
    ImageFetcher,
    Effect.gen(function* () {
      const { images } = yield* GatewayConfig
      const internet = yield* Internet
      const turns = new Turns(images.maxConcurrent)

      const follow = Effect.fnUntraced(function* ({ param, url }: RemoteImage, limit: number) {
        let at: URL | null = url
        for (let redirects = 0; at !== null && redirects <= maxRedirects; redirects++) {
          const { hostname } = at
          const addresses = yield* internet.resolve(hostname)
          if (addresses.length === 0 || !addresses.every((address) => isPublicAddress(address, images.blockedNetworks))) break
          const answer = yield* download({ url: at, connect: () => internet.connect(hostname, addresses), connectTimeout: images.connectMillis, limit })
          if (answer._tag === "Bytes") return answer.bytes
          if (answer._tag === "Long") return yield* imageFileTooLarge(`An image may have at most ${limit} bytes.`, param)
          if (answer._tag === "Failed") break
          at = imageUrl(answer.location, at)
        }
        return yield* failedToDownloadImage(param)
      })

      const fetch = (orgId: OrgId, image: RemoteImage, limit: number) => {
        const late = { orElse: () => Effect.fail(failedToDownloadImage(image.param)) }
        return turns
          .take(orgId, follow(image, limit).pipe(Effect.timeoutOrElse({ duration: images.totalMillis, ...late })))
          .pipe(Effect.timeoutOrElse({ duration: maxWait + images.totalMillis, ...late }))
      }

      return ImageFetcher.of({ fetch })
    })
  )
}
