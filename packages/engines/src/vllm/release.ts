/** The release of vLLM that Seatrial runs. */
export const release = "0.33.0"
