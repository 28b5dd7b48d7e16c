import { sizeInWords } from "@seatrial/domain"
import type { DownloadState } from "@seatrial/hub"

const span = (seconds: number) =>
  seconds < 90 ? `${seconds} s` : seconds < 5_400 ? `${Math.round(seconds / 60)} min` : `${Math.round((seconds / 3_600) * 10) / 10} h`

const share = ({ bytes, totalBytes }: DownloadState) =>
  `${sizeInWords(bytes)} of ${sizeInWords(totalBytes)} (${Math.floor((100 * bytes) / Math.max(1, totalBytes))}%)`

/** A sentence about a stalled download: its progress and how long nothing has arrived. */
export const describeStall = (progress: DownloadState, seconds: number): string => `${share(progress)}, nothing arrived for ${span(seconds)}.`

/** A sentence about a running download: its progress, its speed and the remaining time. */
export const describeProgress = (progress: DownloadState): string => {
  const { bytesPerSecond, secondsLeft, stalledSeconds } = progress
  if (stalledSeconds !== null) return describeStall(progress, stalledSeconds)
  return `${share(progress)}, ${Math.round(bytesPerSecond / 100_000) / 10} MB/s${secondsLeft === null ? "" : `, about ${span(secondsLeft)} left`}.`
}
