// Worked out with numpy: rows, hyperparameters, posterior mean and variance at four points, of the
// difference to row 3, and the log posterior of the hyperparameters, for each model.
#ifndef TT_GP_REFERENCE_H
#define TT_GP_REFERENCE_H

enum { GP_ROWS = 9, GP_DIMS = 3, GP_QUERIES = 4 };
static const double gp_x[GP_ROWS][GP_DIMS] = {
    {0.2255759265496854, 0.734672310041916, 0.0},   {0.5314508684959052, 0.5617471206239865, 0.5},
    {0.4766021681426039, 0.9047602655190454, 0.5},  {0.15513137477130645, 0.896886576793497, 0.5},
    {0.8994637151151503, 0.43509699002662827, 1.0}, {0.7881263044998, 0.6970376396525131, 0.5},
    {0.8625544555670608, 0.5254224872282272, 1.0},  {0.6425383611785602, 0.8087873526089067, 0.0},
    {0.9101184348008049, 0.7394805344727317, 1.0}};
static const double gp_stage[GP_ROWS] = {
    0.5199411442162164, 1.0353126542231834, 0.5396164167075839,
    0.2112114375635558, 0.76509478763563,   1.0750937374043688,
    0.5275196543954894, 0.4203155238887612, 0.8494761812436176};
static const double gp_y[GP_ROWS] = {5.188436194160532, 4.788661642840032,  4.30443236773311,
                                     4.431313372259258, 2.1499458202767383, 2.0072587289314776,
                                     2.054431459982257, 2.4438744934831664, 1.548569083733957};
static const double gp_noise[GP_ROWS] = {
    0.016804701798782705, 0.01964628882941313,  0.013599134764139025,
    0.01768357892655923,  0.06220999934643181,  0.02620208967721444,
    0.043375453333714516, 0.019223937227579535, 0.01684101846342801};
static const double gp_query[GP_QUERIES][GP_DIMS] = {{0.95570199334486, 0.1561316080645393, 0.0},
                                                     {0.21213054095473294, 0.3236399650174624, 0.5},
                                                     {0.2632141676364578, 0.8828171488322288, 1.0},
                                                     {0.4715616447103278, 0.8772449129236449, 0.5}};
static const double gp_query_stage = 0.613;
static const double gp_log_length[GP_DIMS] = {-0.843970070294529, -0.342490308946776,
                                              0.3148107398400336};
static const double gp_log_stage_length = -0.1863295781914935;
static const double gp_log_signal = 0.37;
static const double gp_log_stage = -2.796881414808826;
static const double gp_log_cross = -3.146555163288575;
static const double gp_log_noise = -5.599422459331958;
// Of the trend, in gp_trend_*: model "sum" with a trend.
static const double gp_log_trend = -0.41, gp_trend_prior_mean = -1.3, gp_trend_prior_sd = 1.7;
static const double gp_sum_log_posterior = -1.623933933689144;
static const double gp_sum_mean[GP_QUERIES] = {2.4294221432342766, 5.204953413838099,
                                               4.441838192083184, 4.4061590313073165};
static const double gp_sum_var[GP_QUERIES] = {1.6874244079942373, 1.2322922774641165,
                                              1.3289933134393461, 0.02286231035425767};
static const double gp_sum_delta_mean[GP_QUERIES] = {-2.069250746624565, 0.7062805239792569,
                                                     -0.05683469777565797, -0.09251385855152527};
static const double gp_sum_delta_var[GP_QUERIES] = {1.7626254740277412, 1.267403501062517,
                                                    1.3389695596555473, 0.09202460035170752};
static const double gp_time_log_posterior = -1.2352444452706286;
static const double gp_time_mean[GP_QUERIES] = {2.4268482922404, 5.198149974333333,
                                                4.415242027343563, 4.399113034861285};
static const double gp_time_var[GP_QUERIES] = {1.6134206294849303, 1.1543978867810591,
                                               1.2712853849457326, 0.021187220190315357};
static const double gp_time_delta_mean[GP_QUERIES] = {-2.0198002037838907, 0.7515014783090423,
                                                      -0.031406468680727606, -0.047535461163005444};
static const double gp_time_delta_var[GP_QUERIES] = {1.6352963974006722, 1.158432502542558,
                                                     1.281766595031679, 0.0447246285217752};
static const double gp_product_log_posterior = -2.5171148429132386;
static const double gp_product_mean[GP_QUERIES] = {2.4388694297859796, 5.212958782393112,
                                                   4.619581852011473, 4.4541455062786905};
static const double gp_product_var[GP_QUERIES] = {1.6716463449262404, 1.4222931295517096,
                                                  1.360562245868567, 0.04320785587207856};
static const double gp_product_delta_mean[GP_QUERIES] = {-2.587573517891551, 0.18651583471558109,
                                                         -0.40686109566605744, -0.57229744139884};
static const double gp_product_delta_var[GP_QUERIES] = {2.2835124039126673, 1.7214350547802084,
                                                        1.5943396330959136, 0.5991528585815312};
static const double gp_trend_log_posterior = -2.1926664216679708;
static const double gp_trend_mean[GP_QUERIES] = {1.7311029721978528, 5.375285014839763,
                                                 4.481514448990955, 4.426588624620145};
static const double gp_trend_var[GP_QUERIES] = {2.663978897640036, 1.428197795440686,
                                                1.3950912853169806, 0.024907246121391495};
static const double gp_trend_delta_mean[GP_QUERIES] = {-2.774844270402329, 0.8693377722395829,
                                                       -0.024432793609225838, -0.07935861798003693};
static const double gp_trend_delta_var[GP_QUERIES] = {2.7469346889350166, 1.4625667661761228,
                                                      1.3948541364702434, 0.09634756148960719};

#endif
