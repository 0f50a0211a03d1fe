package render

// OpenF1Names is openF1Names.
var OpenF1Names = openF1Names
