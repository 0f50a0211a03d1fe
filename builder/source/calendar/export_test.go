package calendar

// PackedZone is how a machine without zones finds one.
var PackedZone = packedZone
