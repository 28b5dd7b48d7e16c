import { Refusal } from "../refusals.ts"

const refusal = (code: string) => (message: string, param: string) => new Refusal({ status: 400, type: "invalid_request_error", code, message, param })

export const tooManyImages = refusal("too_many_images")
export const imageFileTooLarge = refusal("image_file_too_large")
export const emptyImageFile = refusal("empty_image_file")
export const invalidBase64Image = refusal("invalid_base64_image")
export const unsupportedImageMediaType = refusal("unsupported_image_media_type")
export const imageParseError = refusal("image_parse_error")
export const imageTooLarge = refusal("image_too_large")
export const invalidImageUrl = refusal("invalid_image_url")

/**
 * One message for all causes, so that callers cannot use the gateway to probe whether an address is private,
 * unreachable or slow.
 */
export const failedToDownloadImage = (param: string) =>
  refusal("failed_to_download_image")("The image could not be downloaded. Check that its URL is public, or send the image as data:image/...;base64.", param)
