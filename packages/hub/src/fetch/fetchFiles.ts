export const fetchFiles = 1
