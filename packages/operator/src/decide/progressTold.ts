import { sizeInWords } from "@seatrial/domain"
import type { DownloadState } from "@seatrial/hub"

const span = (seconds: number) =>
  seconds < 90 ? `${seconds} s` : seconds < 5_400 ? `${Math.round(seconds / 60)} min` : `${Math.round((seconds / 3_600) * 10) / 10} h`

const share = ({ bytes, totalBytes }: DownloadState) =>
  `${sizeInWords(bytes)} of ${sizeInWords(totalBytes)} (${Math.floor((100 * bytes) / Math.max(1, totalBytes))}%)`

/** What there is, that nothing comes, and for how long. */
export const stallTold = (progress: DownloadState, seconds: number): string => `${share(progress)}, nothing came for ${span(seconds)}.`

/** What there is, how fast more comes, and how long that will take. */
export const progressTold = (progress: DownloadState): string => {
  const { bytesPerSecond, secondsLeft, stalledSeconds } = progress
  if (stalledSeconds !== null) return stallTold(progress, stalledSeconds)
  return `${share(progress)}, ${Math.round(bytesPerSecond / 100_000) / 10} MB/s${secondsLeft === null ? "" : `, about ${span(secondsLeft)} left`}.`
}
